"""What engines share: the check of a way of training, influence values, pooled noise, the accuracy of their solves."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from unseed._findings import Finding
from unseed._solvers import Converged, DualRidge, GradientDescent, GradientFlow, PrimalRidge
from unseed.errors import InvalidInputError


def check_training(engine: str, training: object) -> None:
    """Refuse what is not a way of training in closed form."""
    if not isinstance(training, (Converged, GradientFlow, GradientDescent)):
        raise InvalidInputError(
            f"{engine}(training={training!r}): use Converged(), GradientFlow(time=...) or GradientDescent(steps=..., rate=...)"
        )


def influence_values(residual: Tensor, weights: Tensor) -> Tensor:
    """IF_i(x) = n r_i c_i(x) − Σ_j r_j c_j(x): the paper's theorem on the jackknife with every 1/λ cancelled.

    Of residuals (n_rows, n_outputs) and c(x), how far each label moves each prediction: weights of shape
    (n_rows, n_outputs, n_points, n_outputs). Shape (n_rows, n_points, n_outputs).
    """
    effect = torch.einsum("ij,ijmk->imk", residual, weights)
    return len(residual) * effect - effect.sum(0)


def pooled_noise(residuals: Iterable[tuple[Tensor, float]]) -> Tensor:
    """Noise variance from the residuals (n, n_outputs) and traces of several fits. Shape (n_outputs,)."""
    left, traces = zip(*residuals, strict=True)
    total = torch.cat(left).square().sum(0)
    variance: Tensor = total / max(sum(traces), torch.finfo(total.dtype).tiny)
    return variance


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
