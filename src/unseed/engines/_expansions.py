"""Functions that are expansions in the kernel: K(·, Z) β, Z being all training rows, or the few anchors that stand for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._resampling import Plan
from unseed._solvers.cholesky import JITTERS, jittered_cholesky, packed, unpacked
from unseed._state import Record, State
from unseed.engines._protocol import Capability, LeftOut, Trained
from unseed.engines._task import NewPoints, Task, restore_duals, state_of_duals
from unseed.errors import NotAvailableError, SingularKernelError
from unseed.kernels import PopulationKernel, Profile

_PAIRS_AT_A_TIME = 64
_SEEDS: frozenset[Capability] = frozenset({"seeds"})
_WITH_POSTERIOR: frozenset[Capability] = frozenset({"seeds", "posterior"})
_CUT = "this model was cut to anchors and has no longer what {} needs; use the model it was made from"


@dataclass(frozen=True)
class KernelExpansions(Trained):
    """Expansions of every replicate on common points, and the posterior around them.

    Attributes
    ----------
    kernel : PopulationKernel
    inputs : Tensor of shape (m, d)
        The points Z.
    dual : Tensor of shape (n_replicates, m, n_groups, n_outputs)
        β; zero at rows that a replicate does not have.
    """

    kernel: PopulationKernel
    inputs: Tensor
    dual: Tensor

    @cached_property
    def points(self) -> Profile:
        """Z, as the kernel sees them."""
        return self.kernel.profile(self.inputs)

    @property
    @abstractmethod
    def amplitude(self) -> Tensor:
        """Of the Gaussian process, output by output. Shape (n_outputs,)."""

    @abstractmethod
    def whiten(self, cross: Tensor) -> Tensor:
        """L⁻¹k(Z, x), whose squares are what Z could know of each point at most. Shape (m, n_points)."""

    def undetermined(self, white: Tensor) -> Tensor:
        """What the labels, which are noisy, do not determine of it. Shape (any, n_points)."""
        return white[:0]

    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """One pass over the cross-kernel serves all replicates; where nobody else needs it, it is never held as a whole."""
        chosen = self.dual if replicates is None else self.dual[list(replicates)]
        n_replicates, m, *columns = chosen.shape
        weights = chosen.transpose(0, 1).reshape(m, -1)
        matter = weights.any(0)  # the auxiliary network of a start with mean zero has no weights at all
        flat = weights.new_zeros(len(points), weights.shape[1])
        if points.is_shared:
            flat[:, matter] = self.cross(points).T @ weights[:, matter]
        else:
            flat[:, matter] = self.kernel.ntk_product(self.profile(points), self.points, weights[:, matter])
        return flat.reshape(len(points), n_replicates, *columns).transpose(0, 1)

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """Amplitude times K(x, x) − k(x)ᵀA⁻¹k(x), or the same of a difference of points."""
        at, white = self.profile(points), self._white(points)
        prior = at.diagonal.ntk
        if minus is not None:
            other = self.profile(minus)
            prior = prior + other.diagonal.ntk - 2 * _paired(self.kernel, at, other)
            white = white - self._white(minus)
        left = (prior - white.square().sum(0)).clamp_min(0.0) + self.undetermined(white).square().sum(0)
        return left[:, None] * self.amplitude

    def constant(self) -> tuple[Tensor, Tensor]:
        """Labels that are 1, as the points' vectors know them (m,), and 1ᵀA⁻¹1, what they determine of a constant."""
        self._cannot("what is not known of a constant is part of these networks' posterior")

    def mean_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """What of a constant is not fitted, as uncertain as the labels' mean."""
        constant, known = self.constant()
        left = [1 - self._determined(at).T @ constant for at in (points, minus) if at is not None]
        return ((left[0] - left[1] if minus is not None else left[0]).square() / known)[:, None] * self.amplitude

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """The same between points, output by output."""
        white = self._white(points)
        undetermined = self.undetermined(white)
        joint = self.kernel.ntk_gram(self.profile(points)) - white.T @ white + undetermined.T @ undetermined
        return self.amplitude[:, None, None] * joint

    @property
    def numbers_per_prediction(self) -> int:
        """No row of the cross-kernel: the point, what the kernel knows of it alone, its predictions, all copied a few times."""
        features = sum(layer.features[0].numel() for layer in self.points.layers)
        return 4 * (self.points.directions.shape[1] + features + self.dual.numel() // len(self.points))

    @property
    def numbers_per_point(self) -> int:
        """A row of the cross-kernel, the point's own features, or the predictions: whichever is longest."""
        features = max((layer.features[0].numel() for layer in self.points.layers), default=1)
        return max(len(self.points), features, self.dual.numel() // len(self.points))

    def profile(self, points: NewPoints) -> Profile:
        """New points, as the kernel sees them."""
        return points.once(self, "profile", lambda: self.kernel.profile(points.inputs))

    def cross(self, points: NewPoints) -> Tensor:
        """K(Z, x). Shape (m, n_points)."""
        return points.once(self, "cross-kernel", lambda: self.kernel.ntk_cross(self.points, self.profile(points)))

    def _determined(self, points: NewPoints) -> Tensor:
        """Vectors whose products with that of some labels are what these are fitted by. Shape (m, n_points)."""
        return self._white(points)

    def _white(self, points: NewPoints) -> Tensor:
        return points.once(self, "whitened", lambda: self.whiten(self.cross(points)))


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
    constant : Tensor of shape (m + 1,)
        R⁻¹Φᵀ1/ridge, R the root, and 1ᵀA⁻¹1 of the whole model.
    """

    root: Tensor
    amplitude: Tensor
    left_out: LeftOut
    constant: Tensor

    def state(self) -> State:
        """The factor in half, since it is a triangle."""
        left_out = {f"left_out_{name}": getattr(self.left_out, name) for name in ("rows", "errors", "variance")}
        return {"root": packed(self.root), "amplitude": self.amplitude, "constant": self.constant, **left_out}

    @classmethod
    def restore(cls, record: Record, m: int, k: int, device: torch.device) -> AnchoredPosterior:
        """From `state`, for m anchors and k outputs."""
        entries = record.tensor("root", device, m * (m + 1) // 2)
        root = unpacked(entries, m)
        if not bool((root.diagonal() > 0).all()):
            raise record.fault("the posterior's factor is singular")
        rows = record.tensor("left_out_rows", device, None, dtype="int64")
        parts = (record.tensor(f"left_out_{name}", device, len(rows), k) for name in ("errors", "variance"))
        # models of 0.1.0 do not say what they know of a constant: all
        known = record.tensor("constant", device, m + 1) if record.has("constant") else root.new_full((m + 1,), torch.inf)
        return cls(root, record.tensor("amplitude", device, k), LeftOut(rows, *parts), known)


@dataclass(frozen=True)
class AnchoredReplicates(KernelExpansions):
    """Infinitely wide networks of every replicate, on a few of the rows: the same functions, as nearly as these can say them.

    The posterior is that of the projected process (Nyström features φ = L⁻¹K(Z, ·), L Lᵀ = K(Z, Z)): exact where all rows are
    anchors, wider elsewhere.

    Attributes
    ----------
    noise : Tensor of shape (n_outputs,)
        Noise variance, from the whole model.
    posterior : AnchoredPosterior or None
        None where the whole model has none.
    """

    noise: Tensor
    posterior: AnchoredPosterior | None

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The law over seeds is gone with the rows, and is NaN."""
        return _SEEDS if self.posterior is None else _WITH_POSTERIOR

    def influence(self, points: NewPoints) -> Tensor:
        """Not known: most of the rows are gone."""
        raise NotAvailableError(_CUT.format("the infinitesimal jackknife"))

    def noise_variance(self) -> Tensor:
        """As the whole model had it. Shape (n_outputs,)."""
        return self.noise

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
        return {"kind": "anchors", "anchors": self.inputs, **state_of_duals(self.dual), "noise": self.noise, **posterior}

    @classmethod
    def restore(cls, record: Record, kernel: PopulationKernel, task: Task, plan: Plan) -> AnchoredReplicates:
        """From `state`, for a task that has no rows any more."""
        device, k = task.X.device, task.labels.shape[2]
        anchors = record.tensor("anchors", device, None, *task.X.shape[1:])
        dual = torch.stack(restore_duals(record, task, [len(anchors)] * len(plan.counts)))
        posterior = AnchoredPosterior.restore(record, len(anchors), k, device) if record.has("root") else None
        return cls(kernel, anchors, dual, record.tensor("noise", device, k), posterior)

    @property
    def amplitude(self) -> Tensor:
        """As the whole model had it."""
        return self._posterior.amplitude

    def whiten(self, cross: Tensor) -> Tensor:
        """φ of points."""
        features: Tensor = torch.linalg.solve_triangular(self._factor, cross, upper=False)
        return features

    def undetermined(self, white: Tensor) -> Tensor:
        """R⁻¹φ, R the factor of I + ΦᵀΦ/ridge."""
        left: Tensor = torch.linalg.solve_triangular(self._posterior.root, white, upper=False)
        return left

    def constant(self) -> tuple[Tensor, Tensor]:
        """As the whole model had it."""
        *_, known = constant = self._posterior.constant
        return constant[:-1] if bool(known.isfinite()) else torch.zeros_like(constant[:-1]), known

    def _determined(self, points: NewPoints) -> Tensor:
        return self.undetermined(self._white(points))

    @property
    def _posterior(self) -> AnchoredPosterior:
        if self.posterior is None:
            self._cannot("a posterior needs a network trained to convergence on all rows")
        return self.posterior

    @cached_property
    def _factor(self) -> Tensor:
        return root_of(self.kernel, self.points)


def _paired(kernel: PopulationKernel, left: Profile, right: Profile) -> Tensor:
    """K(x, x') of points taken pair by pair, from small blocks around the diagonal. Shape (n_points,)."""
    slices = [slice(start, start + _PAIRS_AT_A_TIME) for start in range(0, len(left), _PAIRS_AT_A_TIME)]
    return torch.cat([kernel.ntk_cross(left[pairs], right[pairs]).diagonal() for pairs in slices])


def root_of(kernel: PopulationKernel, points: Profile) -> Tensor:
    """L with L Lᵀ = K(Z, Z), whose diagonal is raised by what rounding may have taken from it."""
    matrix = kernel.ntk_gram(points)
    found = jittered_cholesky(matrix, float(matrix.diagonal().mean()), JITTERS)
    if found is None:
        raise SingularKernelError(f"{len(points)} anchors are too close to each other for float64; use fewer anchors")
    return found[0]
