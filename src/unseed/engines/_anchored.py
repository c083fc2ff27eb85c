"""A kernel model cut to a few of its rows: the same functions, as nearly as these anchors can say them.

With Z the anchors, every replicate's function f becomes K(·, Z) β with β by least squares on f at all training rows. The
posterior is that of the projected process (Nyström features φ = L⁻¹K(Z, ·), L Lᵀ = K(Z, Z)): exact where m = n, wider
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._solvers import DualRidge
from unseed._solvers.cholesky import JITTERS
from unseed.engines._kernel import KernelReplicates
from unseed.engines._protocol import LeftOut
from unseed.errors import InvalidInputError, NotAvailableError, SingularKernelError
from unseed.kernels import PopulationKernel, Profile

_EXHAUSTED = 1e-11  # share of the largest kernel diagonal below which no row adds anything to the anchors
_CANDIDATES = 4096  # rows among which anchors are chosen, at least
_PAIRS_AT_A_TIME = 64
_CUT = "this model was cut to anchors and has no longer what {} needs; use the model it was made from"


@dataclass(frozen=True)
class AnchoredPosterior:
    """What n rows left unknown, in terms of m anchors.

    Attributes
    ----------
    root : Tensor of shape (m, m)
        Lower Cholesky factor of I + ΦᵀΦ/ridge, Φ the features of all rows.
    amplitude : Tensor of shape (n_outputs,)
    left_out : LeftOut
        Of the rows that may be asked for, from the whole model.
    """

    root: Tensor
    amplitude: Tensor
    left_out: LeftOut


@dataclass(frozen=True)
class AnchoredReplicates:
    """Infinitely wide networks of every replicate on common anchors.

    Attributes
    ----------
    kernel : PopulationKernel
    anchors : Tensor of shape (m, d)
    dual : Tensor of shape (n_replicates, m, n_groups, n_outputs)
    noise : Tensor of shape (n_outputs,)
        Noise variance, from the whole model.
    posterior : AnchoredPosterior or None
        None where the whole model has none.
    """

    kernel: PopulationKernel
    anchors: Tensor
    dual: Tensor
    noise: Tensor
    posterior: AnchoredPosterior | None

    @classmethod
    def of(cls, whole: KernelReplicates, X: Tensor, chosen: Tensor, checked: Tensor | None = None) -> AnchoredReplicates:
        """Project a model onto some of its rows.

        Parameters
        ----------
        whole : KernelReplicates
        X : Tensor of shape (n_rows, d)
            All rows it was trained on.
        chosen : Tensor of shape (m,)
            Rows that become anchors.
        checked : Tensor of shape (c,) or None
            Rows whose leave-one-out errors are kept, with the posterior; None keeps neither.
        """
        kernel, root = whole.kernel, _root(whole.kernel, whole.points[chosen])
        cross = kernel.ntk_cross(whole.points, whole.points[chosen])  # (n, m)
        features = torch.linalg.solve_triangular(root, cross.T, upper=False).T  # Φ
        orthogonal, triangle = torch.linalg.qr(features)
        values = whole.predict(X)  # (n_replicates, n, n_groups, n_outputs)
        flat = values.transpose(0, 1).flatten(1)
        white = torch.linalg.solve_triangular(triangle, orthogonal.T @ flat, upper=True)
        weights = torch.linalg.solve_triangular(root.T, white, upper=True)
        dual = weights.reshape(len(chosen), len(values), *values.shape[2:]).transpose(0, 1).contiguous()
        posterior = None if checked is None else _posterior(whole, features, checked)
        return cls(kernel, X[chosen], dual, whole.noise_variance(), posterior)

    def predict(self, X: Tensor) -> Tensor:
        """Shape (n_replicates, n_points, n_groups, n_outputs)."""
        cross = self.kernel.ntk_cross(self.kernel.profile(X), self._points)
        n_replicates, n_anchors, *columns = self.dual.shape
        flat = cross @ self.dual.transpose(0, 1).reshape(n_anchors, -1)
        return flat.reshape(len(X), n_replicates, *columns).transpose(0, 1)

    def influence(self, X: Tensor) -> Tensor:
        """Not known: most of the rows are gone."""
        raise NotAvailableError(_CUT.format("the infinitesimal jackknife"))

    def noise_variance(self) -> Tensor:
        """As the whole model had it. Shape (n_outputs,)."""
        return self.noise

    def posterior_variance(self, X: Tensor, minus: Tensor | None = None) -> Tensor:
        """At points, or of differences of points. Shape (n_points, n_outputs)."""
        at, posterior = self.kernel.profile(X), self._posterior
        features = self._features(at)
        prior = at.diagonal.ntk
        if minus is not None:
            other = self.kernel.profile(minus)
            features = features - self._features(other)
            prior = prior + other.diagonal.ntk - 2 * _paired(self.kernel, at, other)
        left = (prior - features.square().sum(0)).clamp_min(0.0)
        known = torch.linalg.solve_triangular(posterior.root, features, upper=False).square().sum(0)
        variance: Tensor = (left + known)[:, None] * posterior.amplitude
        return variance

    def posterior_covariance(self, X: Tensor) -> Tensor:
        """Between points. Shape (n_outputs, n_points, n_points)."""
        at, posterior = self.kernel.profile(X), self._posterior
        features = self._features(at)
        known = torch.linalg.solve_triangular(posterior.root, features, upper=False)
        joint = self.kernel.ntk_gram(at) - features.T @ features + known.T @ known
        covariance: Tensor = posterior.amplitude[:, None, None] * joint
        return covariance

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Those of the whole model, for the rows that were kept for it."""
        known = self._posterior.left_out
        if not torch.equal(rows, known.rows):
            raise NotAvailableError(_CUT.format("leave-one-out errors of other rows"))
        return known

    def procedural_variance(self, X: Tensor) -> Tensor:
        """Not known any more: NaN. Shape (n_points,)."""
        return X.new_full((len(X),), torch.nan)

    def procedural_covariance(self, X: Tensor) -> Tensor:
        """Not known any more."""
        raise NotAvailableError(_CUT.format("sample_networks"))

    @property
    def numbers_per_prediction(self) -> int:
        """As for any other question."""
        return self.numbers_per_point

    @property
    def numbers_per_point(self) -> int:
        """A row of the cross-kernel, the point's own features, or the predictions: whichever is longest."""
        features = max((layer.features[0].numel() for layer in self._points.layers), default=1)
        return max(len(self.anchors), features, self.dual.numel() // len(self.anchors))

    @property
    def _posterior(self) -> AnchoredPosterior:
        if self.posterior is None:
            raise InvalidInputError("a posterior needs a network trained to convergence on all rows")
        return self.posterior

    @cached_property
    def _points(self) -> Profile:
        return self.kernel.profile(self.anchors)

    @cached_property
    def _factor(self) -> Tensor:
        return _root(self.kernel, self._points)

    def _features(self, points: Profile) -> Tensor:
        """φ of points. Shape (m, n_points)."""
        cross = self.kernel.ntk_cross(self._points, points)
        features: Tensor = torch.linalg.solve_triangular(self._factor, cross, upper=False)
        return features


def _paired(kernel: PopulationKernel, left: Profile, right: Profile) -> Tensor:
    """K(x, x') of points taken pair by pair, from small blocks around the diagonal. Shape (n_points,)."""
    slices = [slice(start, start + _PAIRS_AT_A_TIME) for start in range(0, len(left), _PAIRS_AT_A_TIME)]
    return torch.cat([kernel.ntk_cross(left[pairs], right[pairs]).diagonal() for pairs in slices])


def choose_anchors(kernel: PopulationKernel, points: Profile, n_anchors: int) -> Tensor:
    """Rows that together say most about all others, by pivoted Cholesky: each next one is the least known so far.

    Of many rows, some thousand evenly spaced ones are looked at. Fewer than asked for where the others add nothing. Shape
    (m,), in the order of the rows.
    """
    n_candidates = min(len(points), max(_CANDIDATES, 2 * n_anchors))
    candidates = torch.linspace(0, len(points) - 1, n_candidates, dtype=torch.float64).long().to(points.directions.device)
    gram = kernel.ntk_gram(points[candidates])
    unknown = gram.diagonal().clone()
    enough = _EXHAUSTED * float(unknown.max())
    factor = gram.new_zeros(len(gram), n_anchors)
    chosen: list[int] = []
    for column in range(n_anchors):
        row = int(unknown.argmax())
        if float(unknown[row]) <= enough:
            break
        factor[:, column] = (gram[:, row] - factor[:, :column] @ factor[row, :column]) / unknown[row].sqrt()
        unknown = (unknown - factor[:, column].square()).clamp_min(0.0)
        unknown[row] = 0.0
        chosen.append(row)
    return candidates[sorted(chosen)]


def _root(kernel: PopulationKernel, points: Profile) -> Tensor:
    """L with L Lᵀ = K(Z, Z), whose diagonal is raised by what rounding may have taken from it."""
    matrix = kernel.ntk_gram(points)
    scale = matrix.diagonal().mean()
    for jitter in JITTERS:
        root: Tensor
        root, failed = torch.linalg.cholesky_ex(matrix + jitter * scale * torch.eye(len(matrix)).to(matrix))
        if not int(failed):
            return root
    raise SingularKernelError(f"{len(matrix)} anchors are too close to each other for float64; use fewer anchors")


def _posterior(whole: KernelReplicates, features: Tensor, checked: Tensor) -> AnchoredPosterior | None:
    (_, factor), *batches = whole.references
    if batches or not isinstance(factor, DualRidge):
        return None
    inner = (features / factor.ridge[:, None]).T @ features
    inner.diagonal().add_(1.0)
    root = torch.linalg.cholesky(inner).contiguous()  # solves depend on the order in memory, in their last bits
    return AnchoredPosterior(root, factor.amplitude(whole.contrast), whole.leave_out(checked))
