"""A kernel model cut to a few of its rows: the same functions, as nearly as these anchors can say them.

With Z the anchors, every replicate's function f becomes K(·, Z) β with β by least squares on f at all training rows. The
posterior is that of the projected process (Nyström features φ = L⁻¹K(Z, ·), L Lᵀ = K(Z, Z)): exact where m = n, wider
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unseed._resampling import Plan
from unseed._solvers import JITTERS
from unseed._state import Record, State
from unseed.engines._points import NewPoints
from unseed.engines._protocol import Capability, LeftOut, Trained
from unseed.engines._task import Task, restore_groups, state_of_groups
from unseed.errors import InvalidInputError, NotAvailableError, SingularKernelError
from unseed.kernels import PopulationKernel, Profile

if TYPE_CHECKING:
    from unseed.engines._infinite import KernelReplicates

_EXHAUSTED = 1e-11  # share of the largest kernel diagonal below which no row adds anything to the anchors
_CANDIDATES = 4096  # rows among which anchors are chosen, at least
_PAIRS_AT_A_TIME = 64
_ALONE: frozenset[Capability] = frozenset({"seeds"})
_WITH_POSTERIOR: frozenset[Capability] = frozenset({"seeds", "posterior"})
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

    def state(self) -> State:
        """The factor in half, since it is a triangle."""
        place = torch.tril_indices(*self.root.shape, device=self.root.device)
        left_out = {f"left_out_{name}": getattr(self.left_out, name) for name in ("rows", "errors", "variance")}
        return {"root": self.root[place[0], place[1]], "amplitude": self.amplitude, **left_out}

    @classmethod
    def restore(cls, record: Record, m: int, k: int, device: torch.device) -> AnchoredPosterior:
        """From `state`, for m anchors and k outputs."""
        entries = record.tensor("root", device, m * (m + 1) // 2)
        root = entries.new_zeros(m, m)
        place = torch.tril_indices(m, m, device=device)
        root[place[0], place[1]] = entries
        if not bool((root.diagonal() > 0).all()):
            raise record.fault("the posterior's factor is singular")
        rows = record.tensor("left_out_rows", device, None, dtype="int64")
        parts = (record.tensor(f"left_out_{name}", device, len(rows), k) for name in ("errors", "variance"))
        return cls(root, record.tensor("amplitude", device, k), LeftOut(rows, *parts))


@dataclass(frozen=True)
class AnchoredReplicates(Trained):
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
    def of(cls, whole: KernelReplicates, chosen: Tensor, checked: Tensor | None = None) -> AnchoredReplicates:
        """Project a model onto some of its rows.

        Parameters
        ----------
        whole : KernelReplicates
        chosen : Tensor of shape (m,)
            Rows that become anchors.
        checked : Tensor of shape (c,) or None
            Rows whose leave-one-out errors are kept, with the posterior; None keeps neither.
        """
        kernel, X = whole.kernel, whole.task.X
        root = _root(kernel, whole.points[chosen])
        cross = kernel.ntk_cross(whole.points, whole.points[chosen])  # (n, m)
        features = torch.linalg.solve_triangular(root, cross.T, upper=False).T  # Φ
        orthogonal, triangle = torch.linalg.qr(features)
        values = whole.predict(NewPoints(X))  # (n_replicates, n, n_groups, n_outputs)
        flat = values.transpose(0, 1).flatten(1)
        white = torch.linalg.solve_triangular(triangle, orthogonal.T @ flat, upper=True)
        weights = torch.linalg.solve_triangular(root.T, white, upper=True)
        dual = weights.reshape(len(chosen), len(values), *values.shape[2:]).transpose(0, 1).contiguous()
        keeps_posterior = checked is not None and "posterior" in whole.capabilities
        posterior = _posterior(whole, features, checked) if checked is not None and keeps_posterior else None
        return cls(kernel, X[chosen], dual, whole.noise_variance(), posterior)

    def rounded(self) -> AnchoredReplicates:
        """The posterior's factor in float32: a triangle whose inverse is at most one, so that rounding stays small."""
        if self.posterior is None:
            return self
        return replace(self, posterior=replace(self.posterior, root=self.posterior.root.float().double()))

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The law over seeds is gone with the rows, and is NaN."""
        return _WITH_POSTERIOR if self.posterior is not None else _ALONE

    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """Shape (n_replicates, n_points, n_groups, n_outputs)."""
        chosen = self.dual if replicates is None else self.dual[list(replicates)]
        n_replicates, n_anchors, *columns = chosen.shape
        flat = self._cross(points).T @ chosen.transpose(0, 1).reshape(n_anchors, -1)
        return flat.reshape(len(points), n_replicates, *columns).transpose(0, 1)

    def influence(self, points: NewPoints) -> Tensor:
        """Not known: most of the rows are gone."""
        raise NotAvailableError(_CUT.format("the infinitesimal jackknife"))

    def noise_variance(self) -> Tensor:
        """As the whole model had it. Shape (n_outputs,)."""
        return self.noise

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """At points, or of differences of points. Shape (n_points, n_outputs)."""
        at, posterior = self._profile(points), self._posterior
        features, prior = self._features(points), at.diagonal.ntk
        if minus is not None:
            other = self._profile(minus)
            features = features - self._features(minus)
            prior = prior + other.diagonal.ntk - 2 * paired(self.kernel, at, other)
        left = (prior - features.square().sum(0)).clamp_min(0.0)
        known = torch.linalg.solve_triangular(posterior.root, features, upper=False).square().sum(0)
        variance: Tensor = (left + known)[:, None] * posterior.amplitude
        return variance

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """Between points. Shape (n_outputs, n_points, n_points)."""
        posterior, features = self._posterior, self._features(points)
        known = torch.linalg.solve_triangular(posterior.root, features, upper=False)
        joint = self.kernel.ntk_gram(self._profile(points)) - features.T @ features + known.T @ known
        covariance: Tensor = posterior.amplitude[:, None, None] * joint
        return covariance

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Those of the whole model, for the rows that were kept for it."""
        known = self._posterior.left_out
        if not torch.equal(rows, known.rows):
            raise NotAvailableError(_CUT.format("leave-one-out errors of other rows"))
        return known

    def procedural_variance(self, points: NewPoints) -> Tensor:
        """Not known any more: NaN. Shape (n_points,)."""
        return points.inputs.new_full((len(points),), torch.nan)

    def procedural_covariance(self, points: NewPoints) -> Tensor:
        """Not known any more."""
        raise NotAvailableError(_CUT.format("sample_networks"))

    def state(self) -> State:
        """Everything."""
        posterior = {} if self.posterior is None else self.posterior.state()
        dual = state_of_groups("dual", self.dual.flatten(0, 1))
        return {"kind": "anchors", "anchors": self.anchors, **dual, "noise": self.noise, **posterior}

    @classmethod
    def restore(cls, record: Record, kernel: PopulationKernel, task: Task, plan: Plan) -> AnchoredReplicates:
        """From `state`, for a task that has no rows any more."""
        device, (_, n_groups, k) = task.X.device, task.labels.shape
        anchors = record.tensor("anchors", device, None, *task.X.shape[1:])
        flat = restore_groups(record, "dual", (len(plan.counts) * len(anchors), n_groups, k), device)
        dual = flat.reshape(len(plan.counts), len(anchors), n_groups, k)
        posterior = AnchoredPosterior.restore(record, len(anchors), k, device) if record.has("root") else None
        return cls(kernel, anchors, dual, record.tensor("noise", device, k), posterior)

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

    def _profile(self, points: NewPoints) -> Profile:
        return points.once(self, "profile", lambda: self.kernel.profile(points.inputs))

    def _cross(self, points: NewPoints) -> Tensor:
        """Shape (m, n_points)."""
        return points.once(self, "cross-kernel", lambda: self.kernel.ntk_cross(self._points, self._profile(points)))

    def _features(self, points: NewPoints) -> Tensor:
        """φ of points. Shape (m, n_points)."""

        def whitened() -> Tensor:
            features: Tensor = torch.linalg.solve_triangular(self._factor, self._cross(points), upper=False)
            return features

        return points.once(self, "features", whitened)


def paired(kernel: PopulationKernel, left: Profile, right: Profile) -> Tensor:
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


def _posterior(whole: KernelReplicates, features: Tensor, checked: Tensor) -> AnchoredPosterior:
    inner = (features / whole.full_factor.ridge[:, None]).T @ features
    inner.diagonal().add_(1.0)
    root = torch.linalg.cholesky(inner).contiguous()  # solves depend on the order in memory, in their last bits
    return AnchoredPosterior(root, whole.amplitude, whole.leave_out(checked))
