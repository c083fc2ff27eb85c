"""Findings that several engines have in common."""

from __future__ import annotations

from collections.abc import Iterable

from unseed._findings import Finding
from unseed._solvers import DualRidge, PrimalRidge


def conditioning(factors: Iterable[object]) -> list[Finding]:
    """How accurately the systems behind a fit could be solved; nothing where training was stopped and none were."""
    conditions = [factor.condition for factor in factors if isinstance(factor, (DualRidge, PrimalRidge))]
    if not conditions:
        return []
    return [
        Finding(
            "condition number of the kernel matrix",
            max(conditions),
            1e12,
            "raise regularization or merge duplicate rows",
            "The arithmetic is accurate.",
            "Rounding errors may show: the equations behind the fit are nearly singular.",
        )
    ]
