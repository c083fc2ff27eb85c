"""Which rule a column has: found by what most of its cells are, or read from what was remembered."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from unseed.errors import InvalidInputError
from unseed_app.tables import dates
from unseed_app.tables.cells import TRUTH, Cells, looks_like_number
from unseed_app.tables.columns import BooleanRule, CategoryRule, DateRule, NumberRule, Place

_CELLS_LOOKED_AT = 10_000

Rule = NumberRule | BooleanRule | DateRule | CategoryRule
_KINDS: dict[str, type[Rule]] = {rule.kind: rule for rule in (NumberRule, BooleanRule, DateRule, CategoryRule)}


def find_rule(name: str, cells: Cells, source: str, place: Place) -> Rule:
    """The rule for a column, by what most of its cells are."""
    present = cells.present.tolist()
    if not present:
        raise InvalidInputError(f"{source}, column {name!r}: every cell is missing; leave it out with --drop")
    kind: str = cells.kind
    if kind == "text":
        first = present[:_CELLS_LOOKED_AT]  # all of them are read afterwards, by the rule found
        if all(text.lower() in TRUTH for text in set(present)):
            kind = "boolean"
        elif 2 * sum(map(dates.looks_like_date, first)) > len(first):
            kind = "date"
        elif 2 * sum(map(looks_like_number, first)) > len(first):
            kind = "number"
    if kind == "number":
        return NumberRule.fit(name, NumberRule(name, 0.0).read(cells, place))
    if kind == "boolean":
        return BooleanRule.fit(name, BooleanRule(name, 0.0).read(cells, place))
    if kind == "date":
        return DateRule.fit(name, cells, place)
    return CategoryRule.fit(name, cells, source)


def rule_to_data(rule: Rule) -> dict[str, Any]:
    """Plain data for JSON."""
    return {"kind": rule.kind, **asdict(rule)}


def rule_from_data(data: dict[str, Any]) -> Rule:
    """The rule that plain data stand for; KeyError, TypeError or ValueError where they stand for none."""
    fields = dict(data)
    kind = _KINDS[fields.pop("kind")]
    if kind is CategoryRule:
        fields["levels"] = tuple(map(str, fields["levels"]))
    for number_field in {"fill", "first"} & fields.keys() - ({"fill"} if kind is CategoryRule else set()):
        fields[number_field] = float(fields[number_field])
    return kind(**fields)
