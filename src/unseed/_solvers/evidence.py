"""How probable all rows are in some spaces of features, from their sums alone; and the amplitudes that make them most so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize
from torch import Tensor

from unseed._solvers.cholesky import jittered_cholesky
from unseed._solvers.landmarks import Spaces
from unseed._solvers.primal import NormalEquations, Sums
from unseed.errors import SingularKernelError

FloatArray = npt.NDArray[np.float64]

_WIDEST = 25.0
"""Natural logarithm of how far an amplitude may go from its start, either way."""

_STEPS, _LAST_STEPS = 12, 3
_LEFT_OVER = 1e-8
"""Share of the rows that must be left over to tell the noise; less of them is rounding."""

_EPSILON, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
_FEW_FEATURES = 1024
_LEVEL = 0.02  # slope of the log evidence in a logarithm of ρ at which a climb has arrived


@dataclass(frozen=True)
class Explained:
    """A fit in features times √ρ, whose ridge is one: y ~ N(0, v (I + ΦΦᵀ)), ρ being in the features.

    Attributes
    ----------
    sums : Sums
        Of the scaled features.
    equations : NormalEquations
        I + ΣφφT.
    coefficients : Tensor of shape (p, c)
    noise : Tensor of shape (c,)
        v, the likeliest, label by label.
    """

    sums: Sums
    equations: NormalEquations
    coefficients: Tensor
    noise: Tensor

    @classmethod
    def of(cls, sums: Sums) -> Explained:
        """Of sums of scaled features."""
        equations = equations_of(sums, 1.0)
        coefficients = equations.solve(sums.cross)
        left = sums.squares - (sums.cross * coefficients).sum(0)
        return cls(sums, equations, coefficients, torch.maximum(left, _EPSILON * sums.squares) / sums.weight)

    def residual_variance(self) -> Tensor:
        """Sum of squared residuals over tr (I − H)², H the smoother; `noise` where the rows decide all. Shape (c,)."""
        unknown = torch.cholesky_inverse(self.equations.factor)
        known = torch.eye(len(unknown)).to(unknown) - unknown  # H in the space of the features
        trace = self.sums.weight - 2 * known.trace() + known.square().sum()
        fitted = (self.coefficients * (self.sums.inner @ self.coefficients)).sum(0)
        left = self.sums.squares - 2 * (self.sums.cross * self.coefficients).sum(0) + fitted
        is_told = trace > _LEFT_OVER * self.sums.weight
        return torch.where(is_told, torch.maximum(left, _EPSILON * self.sums.squares) / trace, self.noise)

    @property
    def log_evidence(self) -> float:
        """Log p(labels) up to a constant, noise and amplitude being the likeliest: −½ Σ_c [n log v + log|I + ΦᵀΦ|]."""
        half_log_determinant = float(self.equations.factor.diagonal().log().sum())
        return float(-0.5 * self.sums.weight * self.noise.clamp_min(_TINY).log().sum()) - len(self.noise) * half_log_determinant

    def slopes(self, sizes: Sequence[int]) -> list[float]:
        """Of the log evidence in log ρ of each space: ½ Σ_c |β_j|²/v − ½ c γ_j, γ how many of its features the rows decide."""
        unknown = torch.cholesky_inverse(self.equations.factor).diagonal()
        energy = (self.coefficients.square() / self.noise.clamp_min(_TINY)).sum(1)
        slopes = (energy - len(self.noise) * (1 - unknown)) / 2
        return [float(part.sum()) for part in torch.split(slopes, list(sizes))]


def equations_of(sums: Sums, ridge: float) -> NormalEquations:
    """Factor of ridge + ΦᵀΦ of scaled features; rounding blurs only what the rows leave to the ridge."""
    matrix = sums.inner.clone()
    scale = float(matrix.diagonal().mean())
    matrix.diagonal().add_(ridge)
    found = jittered_cholesky(matrix, scale)
    if found is None:
        raise SingularKernelError(
            "the sums over the rows are singular to float64; use fewer landmarks, or raise regularization"
        )
    return NormalEquations(found[0], ridge)


def scaled(sums: Sums, scales: Tensor) -> Sums:
    """Sums of features times these scales."""
    inner = sums.inner * scales[:, None] * scales
    return Sums(sums.rows, sums.weight, inner, sums.cross * scales[:, None], sums.squares)


def leading(sums: Sums, kept: Tensor) -> Sums:
    """Sums of some of the features."""
    return Sums(sums.rows, sums.weight, sums.inner[kept][:, kept], sums.cross[kept], sums.squares)


def likeliest_amplitudes(sums: Sums, spaces: Spaces, start: Sequence[float]) -> Tensor:
    """ρ of every space by the evidence of all rows, without a pass over them. Shape (n_spaces,).

    Where there are many features it is climbed with the better half of the landmarks first, at an eighth of the cost of a step.
    The first climbs begin at the start and, since a space that begins too low may stay there, with all amplitudes alike.
    """
    if len(sums.inner) > _FEW_FEATURES:
        half = likeliest_amplitudes(leading(sums, spaces.leading), spaces.half(), start)
        return _climbed(sums, spaces, half.log().cpu().numpy(), _LAST_STEPS)[1]
    own = np.log(start)
    origins = [own] if len(own) == 1 else [own, np.full_like(own, own.mean())]
    return max((_climbed(sums, spaces, origin, _STEPS) for origin in origins), key=lambda found: found[0])[1]


def _climbed(sums: Sums, spaces: Spaces, origin: FloatArray, steps: int) -> tuple[float, Tensor]:
    """Log evidence, and the amplitudes that were reached, each to what moves it by less than one."""

    def cost(log_ratios: FloatArray) -> tuple[float, FloatArray]:
        scales = replace(spaces, amplitudes=torch.tensor(np.exp(origin + log_ratios)).to(sums.inner)).scales
        explained = Explained.of(scaled(sums, scales))
        return -explained.log_evidence, -np.array(explained.slopes(spaces.sizes))

    bounds = [(-_WIDEST, _WIDEST)] * len(origin)
    found = minimize(
        cost,
        np.zeros(len(origin)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": steps, "maxfun": 2 * steps, "gtol": _LEVEL, "ftol": 0.0},
    )
    return -float(found.fun), torch.tensor(np.exp(origin + found.x)).to(sums.inner)
