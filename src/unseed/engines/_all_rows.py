"""Infinitely wide networks on all rows, by conjugate gradients that landmarks precondition; n-by-n matrices are never held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unseed._findings import Finding
from unseed._solvers.cholesky import packed, unpacked
from unseed._solvers.kernel_rows import HeldRows, KernelRows
from unseed._solvers.landmarks import Spaces
from unseed._state import Record, State
from unseed.engines._iterated import Iterated, Solution
from unseed.engines._landmarks import KeptRows, LandmarkReplicates
from unseed.engines._protocol import Capability, LeftOut, Trained
from unseed.engines._solver import landmarks_in_words
from unseed.engines._task import NewPoints, Probe
from unseed.engines._widening import Widening, left_out_at_kept
from unseed.errors import NotAvailableError

_TELLING = 16
"""Probes that are no landmarks: with fewer of them all probes are taken."""

_ROUNDED = 1e-5
"""A tolerance that products in float32 reach safely."""

_AT_A_LANDMARK = 1e-8  # of the mean of what the landmarks leave out


@dataclass(frozen=True)
class AllRowsReplicates(Trained):
    """Networks of every replicate by landmarks, all of them moved by as much as all rows move the one of all rows.

    Attributes
    ----------
    landmarks : LandmarkReplicates
    rows : KernelRows
    dual : Tensor of shape (n_rows, n_outputs)
        (K̂ + I)⁻¹ times labels.
    amplitude, noise : Tensor of shape (n_outputs,)
        Of the Gaussian process, in units of K̂, and the variance of the labels around the function.
    widening : Widening
    left_out : LeftOut
        Of the kept rows that are no landmarks.
    convergence : Iterated
    """

    landmarks: LandmarkReplicates
    rows: KernelRows
    dual: Tensor
    amplitude: Tensor
    noise: Tensor
    widening: Widening
    left_out: LeftOut
    convergence: Iterated

    @classmethod
    def solve(
        cls, landmarks: LandmarkReplicates, X: Tensor, labels: Tensor, tolerance: float, report: Callable[[], None]
    ) -> AllRowsReplicates:
        """For rows (n, d) and labels (n, n_outputs): those that the landmarks have seen, in their order."""
        rows = KernelRows(landmarks.spaces, X)
        held = HeldRows.of(rows) if tolerance >= _ROUNDED else None
        found = Solution.of(landmarks, rows, held or rows, labels, tolerance, report)
        amplitude, widening = found.amplitude(labels), Widening.of(landmarks)
        left_out, shape = left_out_at_kept(landmarks), widening.shape(landmarks)
        is_apart = left_out > _AT_A_LANDMARK * left_out.mean()  # a landmark's own row is no new point to the landmarks
        telling = is_apart[found.places]
        if int(telling.sum()) < _TELLING:
            telling = torch.ones_like(telling)
        at_rows = (found.left_out_variance / shape[found.places])[telling]
        widening = widening.measured(at_rows, found.posterior / widening.at(landmarks, found.points))
        posterior = widening.on_average * shape
        posterior[found.places] = found.left_out_variance
        is_apart[found.places] = True
        positions = landmarks.kept.positions[is_apart]
        errors = found.dual[positions] * (1 + posterior[is_apart, None])
        known = LeftOut(positions, errors, amplitude * widening.at_most * shape[is_apart, None])
        return cls(landmarks, rows, found.dual, amplitude, found.noise, widening, known, found.convergence)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Those of the landmarks."""
        return self.landmarks.capabilities

    @property
    def spaces(self) -> Spaces:
        """Their kernel is Σ ρ_j k_j, in units of the noise."""
        return self.landmarks.spaces

    @property
    def kept(self) -> KeptRows:
        """Those of the landmarks' whose leave-one-out errors are known."""
        kept = self.landmarks.kept
        known = torch.isin(kept.positions, self.left_out.rows)
        return KeptRows(kept.positions[known], kept.X[known], kept.labels[known])

    @cached_property
    def around(self) -> LandmarkReplicates:
        """Landmarks whose posterior is the one of the network on all rows."""
        noise = self.amplitude * self.widening.at_most
        return replace(self.landmarks, factor=self.widening.root, noise=noise, missed=torch.ones_like(noise))

    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """What landmarks say of every replicate, plus what they leave out of the network on all rows."""
        predictions = self.landmarks.predict(points, replicates)
        predictions[:, :, 0] += points.once(self, "difference", lambda: self._difference(points))
        return predictions

    def noise_variance(self) -> Tensor:
        """Sum of squared residuals over its trace. Shape (n_outputs,)."""
        return self.noise

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """See `Widening`."""
        return self.around.posterior_variance(points, minus)

    def missed_variance(self, points: NewPoints) -> Tensor:
        """What the landmarks leave out, which the rows know in part: counted as `Widening` counts it."""
        return self.around.missed_variance(points)

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """The same between points, output by output."""
        return self.around.posterior_covariance(points)

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Errors α_i/(A⁻¹)_ii at kept rows that are no landmarks; most of their (A⁻¹)_ii are estimated where rows are many."""
        known = self.left_out
        places = torch.searchsorted(known.rows, rows).clamp_max(len(known.rows) - 1)
        if not torch.equal(known.rows[places], rows):
            raise NotAvailableError("leave-one-out errors are known of the rows in left_out.rows only")
        return LeftOut(rows, known.errors[places], known.variance[places])

    def influence(self, points: NewPoints) -> Tensor:
        """That of the landmarks."""
        return self.landmarks.influence(points)

    def procedural_variance(self, points: NewPoints) -> Tensor:
        """Not known: NaN. Shape (n_points,)."""
        return self.landmarks.procedural_variance(points)

    def procedural_covariance(self, points: NewPoints) -> Tensor:
        """Not known."""
        self._cannot("the law over seeds needs a matrix of all rows: use solver='exact'")

    def handled(self, n_rows: int) -> str:
        """By iterations."""
        steps = self.convergence.iterations
        return (
            f"{n_rows:,} rows, all of them in {steps} iteration{'s'[: steps != 1]} of conjugate gradients around "
            f"{landmarks_in_words(self.spaces.sizes)}"
        )

    def conditions(self, probe: Probe) -> Iterable[Finding]:
        """Whether the iterations came to an end, and whether the interval's width is that of the rows."""
        yield Finding(
            "residual of the conjugate gradients, over what is tolerated",
            self.convergence.relative_residual / self.convergence.tolerance,
            2.0 + 1e-9,
            "give solver=AllRows(landmarks=...) more landmarks, or raise regularization",
            f"The network on all rows was found in {self.convergence.iterations} iterations.",
            "The network on all rows was not found as exactly as was asked for.",
        )
        variance, left_out = (ask(probe.points).mean() for ask in (self.posterior_variance, self.missed_variance))
        yield Finding(
            "variance that the landmarks leave out, over what the rows leave unknown",
            float(left_out / (variance - left_out).clamp_min(torch.finfo(variance.dtype).tiny)),
            10.0,
            "the interval is as wide as if the rows knew nothing of it: give solver=AllRows(landmarks=...) more of them",
            "The landmarks hold what the rows can say.",
            "Most of the interval's width is there because the landmarks are too few.",
        )

    def state(self) -> State:
        """Everything: rows and dual weights, too."""
        return {
            "kind": "all rows",
            "landmarks": self.landmarks.state(),
            **{name: getattr(self, name) for name in ("dual", "amplitude", "noise")},
            "inputs": self.rows.X,
            "widening": {**vars(self.widening), "root": packed(self.widening.root)},
            "left_out": dict(vars(self.left_out)),
            "convergence": dict(vars(self.convergence)),
        }

    @classmethod
    def restore(cls, record: Record, n_features: int, n_outputs: int, device: torch.device) -> AllRowsReplicates:
        """From `state`."""
        landmarks = LandmarkReplicates.restore(record.part("landmarks"), n_features, n_outputs, device)
        n, p = landmarks.n_rows, len(landmarks.factor)
        widening, left_out, convergence = (record.part(name) for name in ("widening", "left_out", "convergence"))
        rows = left_out.tensor("rows", device, None, dtype="int64")
        amplitude, noise = (record.tensor(name, device, n_outputs) for name in ("amplitude", "noise"))
        errors, variance = (left_out.tensor(name, device, len(rows), n_outputs) for name in ("errors", "variance"))
        root = unpacked(widening.tensor("root", device, p * (p + 1) // 2), p)
        if not bool((root.diagonal() > 0).all()):
            raise record.fault("the posterior's factor is singular")
        return cls(
            landmarks,
            KernelRows(landmarks.spaces, record.tensor("inputs", device, n, n_features)),
            record.tensor("dual", device, n, n_outputs),
            amplitude,
            noise,
            Widening(root, *(widening.fact(name, float) for name in ("spread", "at_most", "on_average"))),
            LeftOut(rows, errors, variance),
            Iterated(
                convergence.whole_number("iterations"),
                convergence.fact("relative_residual", float),
                convergence.fact("tolerance", float),
                convergence.fact("converged", bool),
            ),
        )

    @property
    def numbers_per_point(self) -> int:
        """Those of the landmarks."""
        return self.landmarks.numbers_per_point

    @property
    def numbers_per_prediction(self) -> int:
        """Those of the landmarks."""
        return self.landmarks.numbers_per_prediction

    def _difference(self, points: NewPoints) -> Tensor:
        """All rows minus landmarks, for the network of all rows. Shape (n_points, n_outputs)."""
        return self.rows.expansion(points.inputs, self.dual) - self.landmarks.expansion(points, self.landmarks.centre)


def restore_summed(
    record: Record, n_features: int, n_outputs: int, device: torch.device
) -> LandmarkReplicates | AllRowsReplicates:
    """Networks of rows that were summed up, whichever way the one of all rows was found."""
    kind = AllRowsReplicates if record.fact("kind", str) == "all rows" else LandmarkReplicates
    return kind.restore(record, n_features, n_outputs, device)
