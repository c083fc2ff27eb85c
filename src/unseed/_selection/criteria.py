"""What a good kernel is, said without any truth: the evidence, and the leave-one-out error, each with its gradient.

Both look at A = K/k̄ + ρI (k̄ the mean diagonal of the centred K) and the labels z. Their derivative with respect to the
matrix A is known in closed form, so a gradient costs one inverse more than a value, and nothing is differentiated through a
factorisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from unseed.errors import InvalidInputError


class Score(NamedTuple):
    """Value per row (larger is better) and its derivative with respect to A."""

    value: float
    slope: Tensor  # (n, n), symmetric


Criterion = Callable[[Tensor, Tensor], Score | None]


def evidence(matrix: Tensor, labels: Tensor) -> Score | None:
    """Marginal likelihood with the amplitude profiled out: −½[log(zᵀA⁻¹z/n) + log|A|/n], the mean over outputs.

    None where the matrix cannot be factorised.

    Parameters
    ----------
    matrix : Tensor of shape (n, n)
    labels : Tensor of shape (n, n_outputs)
    """
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if int(failed):
        return None
    n, n_outputs = labels.shape
    inverse = torch.cholesky_inverse(factor)
    weights = inverse @ labels  # α
    fit = _positive((labels * weights).sum(0)) / n  # (n_outputs,)
    value = -0.5 * fit.log().mean() - factor.diagonal().log().mean()
    # d(zᵀA⁻¹z) = −αᵀ dA α and d log|A| = tr A⁻¹ dA
    return Score(float(value), ((weights / fit) @ weights.T / n_outputs - inverse) / (2 * n))


def leave_one_out(matrix: Tensor, labels: Tensor) -> Score | None:
    """Closed-form leave-one-out error α_i/(A⁻¹)_ii as a score: −½ log of its mean square, the mean over outputs."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if int(failed):
        return None
    n, n_outputs = labels.shape
    inverse = torch.cholesky_inverse(factor)
    weights, curvature = inverse @ labels, inverse.diagonal()[:, None]
    errors = weights / curvature
    mean_square = _positive(errors.square().mean(0))
    # d mean e² = (2/n) tr dA [A⁻¹ diag(e²/A⁻¹_ii) A⁻¹ − α (A⁻¹u)ᵀ], u = e/A⁻¹_ii; the score has −1/(2 mean e²) of it
    spread = inverse @ ((errors.square() / curvature / mean_square).sum(1)[:, None] * inverse)
    outer = inverse @ (errors / curvature / mean_square) @ weights.T
    return Score(float(-0.5 * mean_square.log().mean()), ((outer + outer.T) / 2 - spread) / (n * n_outputs))


def _positive(values: Tensor) -> Tensor:
    return values.clamp_min(torch.finfo(values.dtype).tiny)


CRITERIA: dict[str, Criterion] = {"evidence": evidence, "leave_one_out": leave_one_out}


def resolve_criterion(name: object) -> Criterion:
    """Criterion of that name."""
    if not isinstance(name, str) or name not in CRITERIA:
        raise InvalidInputError(f"criterion={name!r} is not known; use {' or '.join(map(repr, CRITERIA))}")
    return CRITERIA[name]
