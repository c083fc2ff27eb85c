"""What can be asked of a choice, what was considered, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseed._checks import check_flag, check_whole_number
from unseed._selection.objective import resolve_criterion
from unseed.networks import MLP, ModuleFactory

SCREENING_ROWS, COMPARING_ROWS, POLISHING_ROWS = 256, 512, 1000
"""Rows on which ascents begin, on which the best of them are compared, and on which the winner is polished."""

_MANY_ROWS, _SHARE, _MOST_ROWS = 5000, 0.4, 3000
"""From how many rows on more of them have the last word: this share of them, and at most so many."""

CLOSE = 0.05
"""Difference of scores per row below which two networks are nearly as good: more rows decide, or both are heard."""

_MATTERS = 0.1
"""Scale of a feature, over the largest, from which on it is a choice and not as good as none."""


@dataclass(frozen=True)
class AutoNetwork:
    """How a network is chosen from the data.

    Parameters
    ----------
    criterion : {"evidence", "leave_one_out"}
        Marginal likelihood of the labels, or the closed-form leave-one-out error.
    relevance : bool
        Whether features may have scales of their own, where that pays.
    max_rows : int or None
        Above this many rows, the choice is made on a subset of so many: half random, half groups of close ones. None is 1,000,
        and from 5,000 rows on two fifths of them, at most 3,000.

    Examples
    --------
    >>> AutoNetwork(criterion="leave_one_out")
    AutoNetwork(criterion='leave_one_out', relevance=True, max_rows=None)
    """

    criterion: str = "evidence"
    relevance: bool = True
    max_rows: int | None = None

    def __post_init__(self) -> None:
        resolve_criterion(self.criterion)
        check_flag("relevance", self.relevance)
        if self.max_rows is not None:
            check_whole_number("max_rows", self.max_rows, at_least=10, reason="a choice needs data")

    def stages(self, n_rows: int) -> tuple[int, int, int, int]:
        """Rows used at most of so many: to begin, to compare, to polish, and to decide where there are more than that."""
        last = self.max_rows or (min(int(_SHARE * n_rows), _MOST_ROWS) if n_rows >= _MANY_ROWS else POLISHING_ROWS)
        return min(SCREENING_ROWS, last), min(COMPARING_ROWS, last), min(POLISHING_ROWS, last), last


@dataclass(frozen=True)
class Candidate:
    """A network, its λ and its score per row (larger is better), already charged for its relevances."""

    network: MLP
    regularization: float
    score: float

    @property
    def has_relevance(self) -> bool:
        """Whether every feature has a scale of its own."""
        return len(set(self.network.input_scale or ())) > 1

    @property
    def n_determined(self) -> int:
        """Hyperparameters that the rows determine: scales of features that matter, and λ; the others are their prior's."""
        scale = set(self.network.input_scale or (1.0,))
        return sum(one > _MATTERS * max(scale) for one in scale) + 1

    @property
    def architecture(self) -> str:
        """The network in a few words."""
        scale = np.array(self.network.input_scale or (1.0,))
        relevance = f"scales {scale.min():.2g} to {scale.max():.2g}" if self.has_relevance else f"scale {scale[0]:.2g}"
        return f"{self.network.activation}, depth {self.network.depth}, {relevance}"


@dataclass(frozen=True)
class Selection:
    """The network chosen, and all that were considered, best first.

    Attributes
    ----------
    candidates : tuple of Candidate
    criterion : str
    """

    candidates: tuple[Candidate, ...]
    criterion: str = "evidence"

    @property
    def best(self) -> Candidate:
        """The candidate with the best score."""
        return self.candidates[0]

    @property
    def rival(self) -> Candidate | None:
        """The best with another activation, where its score is hardly worse."""
        for other in self.candidates[1:]:
            if other.network.activation != self.best.network.activation and other.score > self.best.score - CLOSE:
                return other
        return None

    def __str__(self) -> str:
        lines = [f"{self.criterion.replace('_', '-')} per row   λ          network"]
        lines += [f"{one.score:16.3f}   {one.regularization:.2e}   {one.architecture}" for one in self.candidates]
        return "\n".join(lines)


@dataclass(frozen=True)
class Choice:
    """Network and λ_n to train with, and how they were chosen where that was left to us."""

    network: MLP | ModuleFactory
    regularization: float
    selection: Selection | None = None

    def optimism(self, n_rows: float, *, is_given: bool) -> float:
        """Mean square of errors at new rows over that of left-out errors of the rows that all this was chosen by.

        Akaike's final prediction error: each of p hyperparameters lowers the latter by a share of 1/n, and raises the former
        by as much. Nothing is chosen by the rows where network and λ are given.
        """
        chosen = self.selection.best.n_determined if self.selection is not None else 1
        chosen = 0 if is_given and self.selection is None else min(chosen, int(n_rows / 4))
        return (n_rows + chosen) / (n_rows - chosen)
