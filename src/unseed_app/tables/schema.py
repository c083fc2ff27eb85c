"""Which columns there are and what becomes of each: found in the training table, kept to afterwards."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unseed._results import FloatArray
from unseed.errors import InvalidInputError
from unseed_app.tables.cells import Cells, looks_like_number
from unseed_app.tables.columns import CategoryRule, NumberRule, has_decimal_commas
from unseed_app.tables.rules import Rule, find_rule, rule_from_data, rule_to_data
from unseed_app.tables.table import Table, counted, listed

if TYPE_CHECKING:
    import pandas as pd

_FEWEST_ROWS = 2


@dataclass(frozen=True)
class Encoded:
    """Features as numbers, with notes about what was done on the way."""

    X: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Schema:
    """Rules for the features, names of the targets and of the columns left out.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table(pd.DataFrame({"city": ["Rome", "Bern"] * 3, "y": ["1", "2"] * 3}), "towns.csv")
    >>> schema = Schema.fit(table, ["y"])
    >>> schema.describe()
    '1 column: city category (2 levels)'
    >>> schema.encode(table).X.iloc[0].to_dict()
    {'city = Bern': 0.0, 'city = Rome': 1.0}
    """

    rules: tuple[Rule, ...]
    targets: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    impute: bool = False

    @classmethod
    def fit(cls, table: Table, targets: Sequence[str], drop: Sequence[str] = (), *, impute: bool = False) -> Schema:
        """Find a rule for every column that is neither a target nor dropped."""
        both = [name for name in targets if name in drop]
        if both:
            raise InvalidInputError(f"{table.source}: {both[0]!r} is the target and cannot be dropped")
        if len(table) < _FEWEST_ROWS:
            raise InvalidInputError(f"{table.source} has {counted(len(table), 'row')}; at least two are needed to learn from")
        names = [name for name in table.names if name not in targets and name not in drop]
        if not names:
            raise InvalidInputError(
                f"{table.source} has no column left to predict {listed(targets)} from; "
                "is the delimiter right? It can be given with --delimiter"
            )
        cells = {name: Cells.of(table.frame[name]) for name in names}
        if not impute:
            _refuse_missing(table, cells)
        rules = tuple(find_rule(name, cells[name], table.source, _place(table, name)) for name in names)
        return cls(rules, tuple(targets), tuple(drop), impute)

    @property
    def features(self) -> list[str]:
        """Names of the columns that are used."""
        return [rule.name for rule in self.rules]

    def encode(self, table: Table, *, impute: bool = False) -> Encoded:
        """Features of a table that has all the columns, in whatever order; others are noted and not used."""
        import pandas as pd

        self._check_names(table)
        fill = self.impute or impute
        cells = {rule.name: Cells.of(table.frame[rule.name]) for rule in self.rules}
        if not fill:
            _refuse_missing(table, cells)
        read = {rule.name: rule.read(cells[rule.name], _place(table, rule.name)) for rule in self.rules}
        X = np.concatenate([rule.encode(read[rule.name], fill=fill) for rule in self.rules], axis=1)
        frame = pd.DataFrame(X, columns=pd.Index(self.outputs, dtype=object))
        return Encoded(frame, (*self._notes_on_names(table), *self._notes_on_commas(cells), *_notes_on_missing(cells)))

    @property
    def outputs(self) -> list[str]:
        """Names of the encoded features."""
        return [name for rule in self.rules for name in rule.outputs]

    @property
    def categories(self) -> dict[str, dict[str, str]]:
        """For each column of text, which encoded feature stands for which of its values."""
        texts = [rule for rule in self.rules if isinstance(rule, CategoryRule)]
        return {rule.name: dict(zip(rule.outputs, rule.levels, strict=True)) for rule in texts}

    def labels(self, table: Table) -> FloatArray:
        """Targets to learn from: numbers, all there, not all the same. Shape (n_rows,) or (n_rows, n_targets)."""
        y = self.observed(table)
        for name, values in zip(self.targets, y.reshape(len(table), -1).T, strict=True):
            if values.min() == values.max():
                raise InvalidInputError(
                    f"{table.source}, column {name!r}: the target is {values[0]:g} in every row; there is nothing to learn"
                )
        return y

    def observed(self, table: Table) -> FloatArray:
        """Targets to compare with: numbers, all there. Shape (n_rows,) or (n_rows, n_targets)."""
        y = np.stack([self._target(table, name) for name in self.targets], axis=1)
        return y if len(self.targets) > 1 else y[:, 0]

    def unobserved(self, table: Table) -> list[str]:
        """Targets that a table does not have, or has no values for."""
        return [name for name in self.targets if name not in table.names or Cells.of(table.frame[name]).missing.all()]

    def notes_on_labels(self, table: Table) -> list[str]:
        """What was read in another way than it stands there."""
        return _note_on_commas([name for name in self.targets if has_decimal_commas(Cells.of(table.frame[name]))])

    def _target(self, table: Table, name: str) -> FloatArray:
        cells, place = Cells.of(table.frame[name]), _place(table, name)
        gone = np.flatnonzero(cells.missing)
        if len(gone):
            raise InvalidInputError(f"{place(int(gone[0]))}: the target is missing; take the row out, targets are not imputed")
        if cells.kind == "date":
            raise InvalidInputError(f"{place(0)}: the target is a date, and must be a number")
        return np.asarray(NumberRule(name, 0.0).read(cells, place).values, dtype=np.float64)

    def with_numbers(self, table: Table) -> pd.DataFrame:
        """The table's frame with numbers where its text stands for them, for formats that have types."""
        numbers = {rule.name: rule for rule in self.rules if isinstance(rule, NumberRule)}
        cells = {name: Cells.of(table.frame[name]) for name in numbers}
        texts = [name for name, column in cells.items() if column.kind == "text"]
        return table.frame.assign(**{name: numbers[name].read(cells[name], _place(table, name)).values for name in texts})

    def remarks(self, X: pd.DataFrame) -> list[str]:
        """What a person may want to know of training features: constant ones, and those that count the rows."""
        found = []
        numbers = [rule.name for rule in self.rules if isinstance(rule, NumberRule)]
        constant = [name for name in X.columns if (X[name] == X[name].iloc[0]).all()]
        if constant:
            found.append(f"the same in every row, so of no use: {listed(constant)}")
        counting = [name for name in numbers if len(X) > 2 and (np.diff(X[name].to_numpy()) == 1).all()]
        if counting:
            found.append(f"counts the rows, like an identifier: {listed(counting)}; if it is one, leave it out with --drop")
        return found

    def describe(self) -> str:
        """What becomes of every column, in one line; many are counted, not listed."""
        if len(self.rules) > 1 and all(isinstance(rule, NumberRule) for rule in self.rules):
            return f"{counted(len(self.rules), 'column')}, all numbers"
        if len(self.rules) > 12:
            kinds = Counter(rule.kind for rule in self.rules)
            return f"{counted(len(self.rules), 'column')}: " + ", ".join(f"{n:,} × {kind}" for kind, n in kinds.items())
        return f"{counted(len(self.rules), 'column')}: " + ", ".join(
            f"{shown(rule.name)} {rule.describe()}" for rule in self.rules
        )

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "columns": [rule_to_data(rule) for rule in self.rules],
            "targets": list(self.targets),
            "dropped": list(self.dropped),
            "impute": self.impute,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Schema:
        """The schema that plain data stand for; KeyError, TypeError or ValueError where they stand for none."""
        rules = tuple(rule_from_data(column) for column in data["columns"])
        return cls(rules, tuple(map(str, data["targets"])), tuple(map(str, data["dropped"])), bool(data["impute"]))

    def _check_names(self, table: Table) -> None:
        there = set(table.names)
        missing = [name for name in self.features if name not in there]
        if missing:
            raise InvalidInputError(
                f"{table.source} has no column {listed(missing)}, which the model needs; it has {listed(table.names)}"
            )

    def _notes_on_names(self, table: Table) -> list[str]:
        features, known = set(self.features), {*self.features, *self.targets, *self.dropped}
        used = [name for name in table.names if name in features]
        others = [name for name in table.names if name not in known]
        notes = []
        if used != self.features:
            notes.append("the columns are in another order than in training; they were taken by name")
        if others:
            notes.append(f"not used, because the model does not know {'it' if len(others) == 1 else 'them'}: {listed(others)}")
        return notes

    def _notes_on_commas(self, cells: dict[str, Cells]) -> list[str]:
        names = [rule.name for rule in self.rules if isinstance(rule, NumberRule) and has_decimal_commas(cells[rule.name])]
        return _note_on_commas(names)


def named_columns(option: str, text: str, table: Table) -> list[str]:
    """Columns that an option names, with commas between them; a name that has commas itself is taken as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table(pd.DataFrame({"a": [1], "b": [2], "a,b": [3]}), "three.csv")
    >>> named_columns("target", "b, a", table), named_columns("target", "a,b", table)
    (['b', 'a'], ['a,b'])
    """
    if text in table.names:
        return [text]
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in table.names:
            there = f"it has {listed(table.names)}"
            if close := _closest(name, table.names):
                there = f"did you mean {listed([close])}?"
            elif all(map(looks_like_number, table.names)):
                there += "; is the first line of the file a header?"
            raise InvalidInputError(f"{option} {name!r} is not a column of {table.source}; {there}")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InvalidInputError(f"{option} names {twice[0]!r} twice")
    return names


def _closest(name: str, names: Sequence[str]) -> str:
    """A name that was probably meant, however it is capitalised; nothing where there is none."""
    plain = {other.casefold(): other for other in names}
    close = difflib.get_close_matches(name.casefold(), plain, n=1, cutoff=0.8)
    return plain[close[0]] if close else ""


def shown(name: str) -> str:
    """A name as it is where that is safe to print, in quotes otherwise."""
    return name if name.isprintable() and len(name) <= 60 and "," not in name else listed([name])


def _place(table: Table, name: str) -> Any:
    return lambda row: table.place(row, name)


def _note_on_commas(names: list[str]) -> list[str]:
    return [f"decimal commas were read as points: {listed(names)}"] if names else []


def _refuse_missing(table: Table, cells: dict[str, Cells]) -> None:
    counts = {name: int(column.missing.sum()) for name, column in cells.items() if column.missing.any()}
    if not counts:
        return
    name = next(iter(counts))
    row = int(np.flatnonzero(cells[name].missing)[0])
    total = sum(counts.values())
    more = f" (and {counted(total - 1, 'other cell')}, in {counted(len(counts), 'column')})" if total > 1 else ""
    raise InvalidInputError(f"{table.place(row, name)}: the value is missing{more}; fill it in, or add --impute median")


def _notes_on_missing(cells: dict[str, Cells]) -> list[str]:
    counts = {name: int(column.missing.sum()) for name, column in cells.items() if column.missing.any()}
    if not counts:
        return []
    filled = counted(sum(counts.values()), "missing value")
    return [f"{filled} filled with the training median or most frequent text: {listed(list(counts))}"]
