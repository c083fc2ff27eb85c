"""The systems of the network on all rows, solved together by conjugate gradients: every pass over the kernel serves all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from unseed._solvers import conjugate_gradients
from unseed._solvers.kernel_rows import HeldRows, KernelRows
from unseed.engines._landmarks import LandmarkReplicates

_MAX_ITERATIONS = 60
_FEWEST_PROBES, _MOST_PROBES, _PROBED_PAIRS = 64, 256, 2.5e9
_HARDER, _BEYOND = 16, 1.25


@dataclass(frozen=True)
class Iterated:
    """How conjugate gradients went.

    Attributes
    ----------
    iterations : int
    relative_residual : float
        ‖b − A x‖ / ‖b‖ of the worst column.
    tolerance : float
        What it was to fall to.
    converged : bool
    """

    iterations: int
    relative_residual: float
    tolerance: float
    converged: bool


@dataclass(frozen=True)
class Solution:
    """For A = K̂ + I: dual weights, some of A⁻¹, and the posterior at some points.

    Attributes
    ----------
    dual : Tensor of shape (n_rows, n_outputs)
        A⁻¹ times labels.
    rows, places : Tensor of shape (n_probes,)
        Positions of the probes among all rows, and among the kept ones.
    inverse : Tensor of shape (n_rows, n_probes)
        Their columns of A⁻¹.
    points : Tensor of shape (n_points, d)
    posterior : Tensor of shape (n_points,)
        In units of K̂.
    convergence : Iterated
    """

    dual: Tensor
    rows: Tensor
    places: Tensor
    inverse: Tensor
    points: Tensor
    posterior: Tensor
    convergence: Iterated

    @classmethod
    def of(
        cls,
        landmarks: LandmarkReplicates,
        rows: KernelRows,
        products: KernelRows | HeldRows,
        labels: Tensor,
        tolerance: float,
        report: Callable[[], None],
    ) -> Solution:
        """For labels (n, n_outputs); ``products`` multiplies by K̂ and by its approximate inverse.

        A warning says where the residual has not fallen to the tolerance.
        """
        places = _probes(len(landmarks.kept.X), len(labels)).to(labels.device)
        probes = landmarks.kept.positions[places]
        units = labels.new_zeros(len(labels), len(places))
        units[probes, torch.arange(len(places), device=labels.device)] = 1.0
        points = _harder_points(landmarks)
        cross = rows.cross(points)
        start = products.smooth(landmarks.factor, cross)
        # As small as what landmarks leave out, and so are errors of its solution.
        rest = cross - products.product(start).add_(start)
        found = conjugate_gradients(
            lambda columns: products.product(columns).add_(columns),
            torch.cat([labels, units, rest], dim=1),
            lambda columns: products.smooth(landmarks.factor, columns),
            tolerance=tolerance,
            max_iterations=_MAX_ITERATIONS,
            report=report,
        )
        convergence = Iterated(found.iterations, found.relative_residual, tolerance, found.converged)
        _warn_if_not_converged(convergence)
        n_columns = [labels.shape[1], len(places), len(points)]
        dual, inverse, solved = found.solution.split(n_columns, dim=1)  # type: ignore[no-untyped-call]
        posterior = landmarks.spaces(points)[1] - (cross * start).sum(0) - ((start + solved) * rest).sum(0)
        return cls(dual.clone(memory_format=torch.contiguous_format), probes, places, inverse, points, posterior, convergence)

    @property
    def curvature(self) -> Tensor:
        """(A⁻¹)_ii of the probes."""
        return self.inverse[self.rows, torch.arange(len(self.rows), device=self.rows.device)]

    @property
    def left_out_variance(self) -> Tensor:
        """The posterior at every probe without its own label, in units of K̂."""
        return 1 / self.curvature - 1

    def amplitude(self, labels: Tensor) -> Tensor:
        """As `WeightedRidge.amplitude`, by the probes. Shape (n_outputs,)."""
        likeliest = (labels * self.dual).sum(0) / len(labels)
        left_out = (self.dual[self.rows].square() / self.curvature[:, None]).mean(0)
        return torch.where(left_out < likeliest / 2, left_out, likeliest)

    @property
    def noise(self) -> Tensor:
        """Sum of squared residuals over tr A⁻², which the probes tell. Shape (n_outputs,)."""
        return self.dual.square().sum(0) / (len(self.dual) * self.inverse.square().sum(0).mean())


def _probes(n_kept: int, n: int) -> Tensor:
    """Places among the kept rows, evenly: more of fewer rows."""
    count = min(n_kept, _MOST_PROBES, max(_FEWEST_PROBES, int(_PROBED_PAIRS / n**2)))
    return torch.linspace(0, n_kept - 1, count).round().long()


def _harder_points(landmarks: LandmarkReplicates) -> Tensor:
    """Points at which landmarks are too sure of themselves if they are so anywhere: some of them, and some beyond the rows."""
    own = [space.landmarks[:: max(1, len(space) // _HARDER)] for space in landmarks.spaces.spaces]
    apart = landmarks.kept.X - landmarks.kept.X.mean(0)
    outermost = apart[apart.square().sum(1).topk(min(_HARDER, len(apart))).indices]
    return torch.cat([*own, landmarks.kept.X.mean(0) + _BEYOND * outermost])


def _warn_if_not_converged(found: Iterated) -> None:
    if not found.converged:
        warnings.warn(
            f"conjugate gradients stopped after {found.iterations} iterations at a relative residual of "
            f"{found.relative_residual:.1e} and should have reached tolerance={found.tolerance:g}: give "
            "solver=AllRows(landmarks=...) more landmarks, raise regularization, or raise the tolerance",
            ConvergenceWarning,
            stacklevel=4,
        )
