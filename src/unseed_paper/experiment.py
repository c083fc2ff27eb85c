"""What is asked for: a table, a protocol, an engine, methods, sizes and repetitions, checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from unseed.errors import InvalidInputError
from unseed_paper.printed import ERROR_TABLES, INTERVAL_TABLES, REAL_TABLES, TABLES
from unseed_paper.problems import DIMENSIONS, SIZES, Setting, settings_of
from unseed_paper.protocols import ENGINES, PROTOCOLS, Protocol

INTERVAL_METHODS = (
    "auto",
    "pnc_batching",
    "pnc_cheap_bootstrap",
    "algorithm_3",
    "pnc_jackknife",
    "sectioning",
    "half_sampling",
    "dropout_uq",
)
ERROR_METHODS = ("base_network", "pnc", "deep_ensemble_2", "deep_ensemble_5")
ALIASES = {
    "batching": "pnc_batching",
    "cheap_bootstrap": "pnc_cheap_bootstrap",
    "bootstrap": "pnc_cheap_bootstrap",
    "jackknife": "pnc_jackknife",
    "infinitesimal_jackknife": "pnc_jackknife",
    "dropout": "dropout_uq",
    "base": "base_network",
    "ensemble_2": "deep_ensemble_2",
    "ensemble_5": "deep_ensemble_5",
}
_PAPER_REPETITIONS = {"table-1": 100, "table-3": 100, "table-5": 40} | dict.fromkeys(ERROR_TABLES, 10)
_QUICK_REPETITIONS = {"table-1": 10, "table-3": 10, "table-5": 4} | dict.fromkeys(ERROR_TABLES, 3)
_QUICK_SIZES = (128, 256)


@dataclass(frozen=True)
class Experiment:
    """One table under one protocol with one engine.

    Parameters
    ----------
    table : "table-1", …, "table-7"
    protocol : {"paper", "authors-code", "default"}
    engine : {"kernel", "linearized", "network"}
    repetitions : int or None
        Data sets for each setting; None is the paper's number (100, 40 or 10).
    methods : tuple of str
        Empty for all that the engine and the protocol have.
    sizes, dimensions : tuple of int or None
        Of the synthetic settings; None takes the paper's.
    device : str
    quick : bool
        Few repetitions of the small sizes, to see that everything works.

    Examples
    --------
    >>> Experiment("table-1", quick=True).repetitions
    10
    """

    table: str
    protocol: str = "paper"
    engine: str = "kernel"
    repetitions: int | None = None
    methods: tuple[str, ...] = ()
    sizes: tuple[int, ...] | None = None
    dimensions: tuple[int, ...] | None = None
    device: str = field(default="auto", compare=False)
    quick: bool = False

    def __post_init__(self) -> None:
        _one_of("table", self.table, TABLES)
        _one_of("protocol", self.protocol, tuple(PROTOCOLS))
        _one_of("engine", self.engine, ENGINES)
        if self.table == "table-7" and (self.methods or self.sizes or self.dimensions or self.repetitions):
            raise InvalidInputError("table-7 is a formula; it takes no methods, sizes, dimensions or repetitions")
        if self.table in REAL_TABLES and (self.sizes or self.dimensions):
            raise InvalidInputError(f"{self.table} has real data; sizes and dimensions are for tables 1 to 4")
        for name, allowed in (("sizes", SIZES), ("dimensions", DIMENSIONS)):
            asked = getattr(self, name)
            for value in asked or ():
                _one_of(name, value, allowed)
            usual = _QUICK_SIZES if self.quick and name == "sizes" else allowed
            object.__setattr__(self, name, tuple(v for v in allowed if v in (usual if asked is None else asked)))
        if self.repetitions is None:
            default = _QUICK_REPETITIONS if self.quick else _PAPER_REPETITIONS
            object.__setattr__(self, "repetitions", default.get(self.table, 0))
        elif isinstance(self.repetitions, bool) or self.repetitions < 1:
            raise InvalidInputError(f"repetitions={self.repetitions!r} must be a whole number >= 1")
        known = self._known_methods
        named = tuple(dict.fromkeys(ALIASES.get(method, method) for method in self.methods))
        for method in named:
            _one_of("methods", method, known, f" for {self.table} under protocol {self.protocol!r}")
        object.__setattr__(self, "methods", named or self._usual_methods)

    @property
    def name(self) -> str:
        """Names the files of this experiment."""
        return self.table if self.table == "table-7" else f"{self.table}.{self.protocol}.{self.engine}"

    @property
    def is_about_intervals(self) -> bool:
        """Intervals, or errors of predictions."""
        return self.table in INTERVAL_TABLES

    @property
    def rules(self) -> Protocol:
        """The protocol itself."""
        return PROTOCOLS[self.protocol]

    @property
    def settings(self) -> list[Setting]:
        """All settings, in the order of the table's rows."""
        return settings_of(self.table, self.sizes or SIZES, self.dimensions or DIMENSIONS)

    @property
    def command(self) -> str:
        """The command that does this."""
        if self.table == "table-7":
            return f"unseed reproduce {self.table}"
        words = [f"unseed reproduce {self.table} --protocol {self.protocol} --engine {self.engine}"]
        words.append(f"--repetitions {self.repetitions}")
        if self.methods != self._usual_methods:
            words.append(f"--methods {','.join(self.methods)}")
        for name, usual in (("sizes", SIZES), ("dimensions", DIMENSIONS)):
            asked = getattr(self, name)
            if asked != usual:
                words.append(f"--{name} {','.join(map(str, asked))}")
        return " ".join(words)

    @staticmethod
    def knows(table: str, protocol: str, method: str) -> bool:
        """Whether a method goes with a table and a protocol."""
        return ALIASES.get(method, method) in Experiment(table, protocol)._known_methods

    @property
    def _known_methods(self) -> tuple[str, ...]:
        if not self.is_about_intervals:
            return () if self.table == "table-7" else ERROR_METHODS
        unknown = {"dropout_uq" if self.protocol == "default" else "auto"}  # no rule tunes the one, no network is chosen
        if not self.rules.separate_resamples:
            unknown.add("algorithm_3")  # it is what the bootstrap does there
        return tuple(method for method in INTERVAL_METHODS if method not in unknown)

    @property
    def _usual_methods(self) -> tuple[str, ...]:
        """All that are known, but for trained networks those of the paper's own tables: each costs minutes."""
        if self.engine == "network" and self.is_about_intervals:
            paper = ("auto", "pnc_batching", "pnc_cheap_bootstrap", "dropout_uq")
            return tuple(method for method in self._known_methods if method in paper)
        return self._known_methods


def _one_of(name: str, value: object, allowed: tuple[object, ...], where: str = "") -> None:
    if value not in allowed:
        raise InvalidInputError(f"{name}={value!r} is not known{where}; use {', '.join(map(str, allowed))}")
