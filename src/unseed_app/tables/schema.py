"""Which columns there are and what becomes of each: found in the training table, kept to afterwards."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unseed._results import FloatArray
from unseed.errors import InvalidInputError
from unseed_app.tables.rules import KINDS, CategoryRule, NumberRule, Rule, find_rule, has_decimal_commas, looks_like_number
from unseed_app.tables.table import Cells, Table, counted, listed

_FEWEST_ROWS, _MOST_DESCRIBED = 2, 12


def named_columns(option: str, text: str, table: Table) -> list[str]:
    """Columns that an option names, with commas between them; a name that has commas itself is taken as it is."""
    if text in table.names:
        return [text]
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in table.names:
            there = f"it has {listed(table.names)}"
            plain = {other.casefold(): other for other in table.names}
            if close := difflib.get_close_matches(name.casefold(), plain, n=1, cutoff=0.8):
                there = f"did you mean {listed([plain[close[0]]])}?"
            elif all(map(looks_like_number, table.names)):
                there += "; is the first line of the file a header?"
            raise InvalidInputError(f"{option} {name!r} is not a column of {table.source}; {there}")
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise InvalidInputError(f"{option} names {twice[0]!r} twice")
    return names


class Encoded(NamedTuple):
    """Features as numbers, with notes about what was done on the way."""

    X: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Schema:
    """Rules for the features, names of the targets and of the columns left out."""

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
        cells, _ = _cells(table, names, impute=impute)
        return cls(tuple(find_rule(column) for column in cells.values()), tuple(targets), tuple(drop), impute)

    @property
    def features(self) -> list[str]:
        """Names of the columns that are used."""
        return [rule.name for rule in self.rules]

    @property
    def outputs(self) -> list[str]:
        """Names of the encoded features."""
        return [name for rule in self.rules for name in rule.outputs]

    @property
    def categories(self) -> dict[str, dict[str, str]]:
        """For each column of text, which encoded feature stands for which of its values."""
        texts = [rule for rule in self.rules if isinstance(rule, CategoryRule)]
        return {rule.name: dict(zip(rule.outputs, rule.levels, strict=True)) for rule in texts}

    @property
    def _numbers(self) -> list[NumberRule]:
        return [rule for rule in self.rules if isinstance(rule, NumberRule)]

    def encode(self, table: Table, *, impute: bool = False) -> Encoded:
        """Features of a table that has all the columns, in whatever order; others are noted and not used."""
        notes = self._notes_on_names(table)
        cells, notes_on_gaps = _cells(table, self.features, impute=self.impute or impute)
        X = np.concatenate([rule.encode(rule.read(cells[rule.name])) for rule in self.rules], axis=1)
        commas = _note_on_commas([cells[rule.name] for rule in self._numbers])
        return Encoded(pd.DataFrame(X, columns=pd.Index(self.outputs, dtype=object)), (*notes, *commas, *notes_on_gaps))

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
        y = []
        for name in self.targets:
            cells = table.cells(name)
            if cells.missing.any():
                place = cells.first_place(cells.missing)
                raise InvalidInputError(f"{place}: the target is missing; take the row out, targets are not imputed")
            if cells.kind == "date":
                raise InvalidInputError(f"{table.place(0, name)}: the target is a date, and must be a number")
            y.append(NumberRule(name, 0.0).read(cells))
        return np.stack(y, axis=1) if len(y) > 1 else y[0]

    def unobserved(self, table: Table) -> list[str]:
        """Targets that a table does not have, or has no values for."""
        return [name for name in self.targets if name not in table.names or table.cells(name).missing.all()]

    def notes_on_labels(self, table: Table) -> list[str]:
        """What was read in another way than it stands there."""
        return _note_on_commas(map(table.cells, self.targets))

    def with_numbers(self, table: Table) -> pd.DataFrame:
        """The table's frame with numbers where its text stands for them, for formats that have types."""
        cells = {rule: table.cells(rule.name) for rule in self._numbers}
        return table.frame.assign(**{rule.name: rule.read(c) for rule, c in cells.items() if c.kind == "text"})

    def remarks(self, X: pd.DataFrame) -> list[str]:
        """What a person may want to know of training features: constant ones, and those that count the rows."""
        found = []
        if constant := [name for name in X.columns if (X[name] == X[name].iloc[0]).all()]:
            found.append(f"the same in every row, so of no use: {listed(constant)}")
        if counting := [rule.name for rule in self._numbers if len(X) > 2 and (np.diff(X[rule.name]) == 1).all()]:
            found.append(f"counts the rows, like an identifier: {listed(counting)}; if it is one, leave it out with --drop")
        return found

    def describe(self) -> str:
        """What becomes of every column, in one line; many are counted, not listed."""
        columns = counted(len(self.rules), "column")
        if len(self._numbers) == len(self.rules) > 1:
            return f"{columns}, all numbers"
        if len(self.rules) > _MOST_DESCRIBED:
            kinds = Counter(rule.kind for rule in self.rules)
            return f"{columns}: " + ", ".join(f"{n:,} × {kind}" for kind, n in kinds.items())
        return f"{columns}: " + ", ".join(f"{_shown(rule.name)} {rule.describe()}" for rule in self.rules)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "columns": [{"kind": rule.kind, **asdict(rule)} for rule in self.rules],
            "targets": list(self.targets),
            "dropped": list(self.dropped),
            "impute": self.impute,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Schema:
        """The schema that plain data stand for; KeyError, TypeError or ValueError where they stand for none."""
        rules = tuple(_remembered_rule(column) for column in data["columns"])
        return cls(rules, tuple(map(str, data["targets"])), tuple(map(str, data["dropped"])), bool(data["impute"]))

    def _notes_on_names(self, table: Table) -> list[str]:
        """What is otherwise than in training; a column that is not there is refused."""
        features, known = set(self.features), {*self.features, *self.targets, *self.dropped}
        there = set(table.names)
        if missing := [name for name in self.features if name not in there]:
            raise InvalidInputError(
                f"{table.source} has no column {listed(missing)}, which the model needs; it has {listed(table.names)}"
            )
        notes = []
        if [name for name in table.names if name in features] != self.features:
            notes.append("the columns are in another order than in training; they were taken by name")
        if others := [name for name in table.names if name not in known]:
            notes.append(f"not used, because the model does not know {'it' if len(others) == 1 else 'them'}: {listed(others)}")
        return notes


def _cells(table: Table, names: Sequence[str], *, impute: bool) -> tuple[dict[str, Cells], list[str]]:
    """Cells of columns, and a note on missing ones; these are refused unless they will be filled."""
    cells = {name: table.cells(name) for name in names}
    gaps = [column for column in cells.values() if column.missing.any()]
    total = sum(int(column.missing.sum()) for column in gaps)
    if gaps and not impute:
        more = f" (and {counted(total - 1, 'other cell')}, in {counted(len(gaps), 'column')})" if total > 1 else ""
        place = gaps[0].first_place(gaps[0].missing)
        raise InvalidInputError(f"{place}: the value is missing{more}; fill it in, or add --impute median")
    names = listed([column.name for column in gaps])
    filled = f"{counted(total, 'missing value')} filled with the training median or most frequent text: {names}"
    return cells, [filled] if gaps else []


def _remembered_rule(data: dict[str, Any]) -> Rule:
    """The rule that plain data stand for; KeyError, TypeError or ValueError where they stand for none."""
    fields = dict(data)
    kind = KINDS[fields.pop("kind")]
    if kind is CategoryRule:
        return CategoryRule(**fields | {"levels": tuple(map(str, fields["levels"]))})
    return kind(**fields | {name: float(fields[name]) for name in ("first", "fill") if name in fields})


def _shown(name: str) -> str:
    """A name as it is where that is safe to print, in quotes otherwise."""
    return name if name.isprintable() and len(name) <= 60 and "," not in name else listed([name])


def _note_on_commas(columns: Iterable[Cells]) -> list[str]:
    names = [cells.name for cells in columns if has_decimal_commas(cells)]
    return [f"decimal commas were read as points: {listed(names)}"] if names else []
