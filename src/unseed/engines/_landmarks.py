"""Infinitely wide networks in a space of landmarks, and what that space leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unseed._findings import Finding
from unseed._resampling import hashed
from unseed._solvers.cholesky import packed, unpacked
from unseed._solvers.landmarks import Spaces
from unseed._state import Record, State
from unseed.engines._protocol import CONVERGED, Capability, LeftOut, Trained
from unseed.engines._solver import landmarks_in_words
from unseed.engines._task import NewPoints, Probe

KEPT_ROWS = 4096
"""Rows whose errors are looked at: those with the smallest hashes, whatever the order and the pieces in which they come."""

_SEEDS: frozenset[Capability] = frozenset({"seeds"})
_WITH_POSTERIOR: frozenset[Capability] = CONVERGED | {"seeds", "landmarks"}


@dataclass(frozen=True)
class KeptRows:
    """A random sample of all rows that came by: always the same ones, however they were cut up.

    Attributes
    ----------
    positions : Tensor of shape (m,), int64
        In the data, in order.
    X : Tensor of shape (m, d)
    labels : Tensor of shape (m, n_outputs)
    """

    positions: Tensor
    X: Tensor
    labels: Tensor

    def plus(self, X: Tensor, labels: Tensor, start: int) -> KeptRows:
        """With further rows, which stand at ``start`` and after."""
        return self + KeptRows(torch.arange(start, start + len(X), device=X.device), X, labels)

    def __add__(self, other: KeptRows) -> KeptRows:
        """Of these rows and later ones."""
        positions, X, labels = (
            torch.cat([getattr(one, name) for one in (self, other)]) for name in ("positions", "X", "labels")
        )
        order = hashed(positions.cpu().numpy(), 0, "kept rows").argsort(kind="stable")[:KEPT_ROWS]
        chosen = torch.from_numpy(np.sort(order)).to(X.device)
        return KeptRows(positions[chosen], X[chosen], labels[chosen])

    def state(self) -> State:
        """Everything."""
        return {"positions": self.positions, "X": self.X, "labels": self.labels}

    @classmethod
    def restore(cls, record: Record, n_features: int, n_outputs: int, device: torch.device) -> KeptRows:
        """From `state`."""
        positions = record.tensor("positions", device, None, dtype="int64")
        X = record.tensor("X", device, len(positions), n_features)
        return cls(positions, X, record.tensor("labels", device, len(positions), n_outputs))


@dataclass(frozen=True)
class LandmarkReplicates(Trained):
    """Networks of every replicate as coefficients of the features of some landmarks, and the posterior around them.

    Attributes
    ----------
    spaces : Spaces
        Their kernel is Σ ρ_j k_j, in units of the noise.
    factor : Tensor of shape (p, p)
        Lower Cholesky factor of I + ΦᵀΦ over all rows.
    coefficients : Tensor of shape (n_replicates, p, n_outputs)
    centre : Tensor of shape (p, n_outputs)
        Of the fit to all rows.
    noise : Tensor of shape (n_outputs,)
        Variance of the noise that makes the labels most probable.
    residual : Tensor of shape (n_outputs,)
        The same from the sum of squared residuals.
    missed : Tensor of shape (n_outputs,)
        How much of what the landmarks leave out of the prior the function has, between 0 and 1.
    kept : KeptRows
    n_rows : int
    has_all_rows : bool
        Whether one replicate has all rows, so that there is a posterior around it.
    """

    spaces: Spaces
    factor: Tensor
    coefficients: Tensor
    centre: Tensor
    noise: Tensor
    residual: Tensor
    missed: Tensor
    kept: KeptRows
    n_rows: int
    has_all_rows: bool

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Formulas for converged networks need one of all rows."""
        return _WITH_POSTERIOR if self.has_all_rows else _SEEDS

    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """The auxiliary network of infinite width starts at zero: all that is learned is the base network's."""
        chosen = self.coefficients if replicates is None else self.coefficients[list(replicates)]
        flat = self.expansion(points, chosen.permute(1, 0, 2).flatten(1))
        base = flat.reshape(len(points), len(chosen), -1).transpose(0, 1)
        return torch.stack([base, torch.zeros_like(base)], dim=2)

    def expansion(self, points: NewPoints, coefficients: Tensor) -> Tensor:
        """Features of points times coefficients (p, c); features that nobody else needs are never held. Shape (n_points, c)."""
        if points.is_shared:
            return self._features(points)[0] @ coefficients
        total = points.inputs.new_zeros(len(points), coefficients.shape[1])
        parts = (self.spaces.scales[:, None] * coefficients).split(self.spaces.sizes)  # type: ignore[no-untyped-call]
        for space, own in zip(self.spaces.spaces, parts, strict=True):
            total += space.expansion(points.inputs, own)
        return total

    def noise_variance(self) -> Tensor:
        """Sum of squared residuals over its trace. Shape (n_outputs,)."""
        return self.residual

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """What the rows do not determine of the features, and what the features leave out."""
        if minus is None:
            return self._undetermined(self._features(points)[0]) + self.missed_variance(points)
        (left, prior), (right, other) = self._features(points), self._features(minus)
        between = prior + other - 2 * self.spaces.paired(points.inputs, minus.inputs)
        return self._undetermined(left - right) + self._left_out_of((between - (left - right).square().sum(1)).clamp_min(0.0))

    def missed_variance(self, points: NewPoints) -> Tensor:
        """What the landmarks leave out. Shape (n_points, n_outputs)."""
        features, prior = self._features(points)
        return self._left_out_of((prior - features.square().sum(1)).clamp_min(0.0))

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """The same between points, output by output."""
        features, _ = self._features(points)
        white = self._whiten(features)
        left_out = self.spaces.gram(points.inputs) - features @ features.T
        return self.noise[:, None, None] * (white.T @ white + self.missed[:, None, None] * left_out)

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Errors at kept rows, by their positions in the data, each without its own label."""
        places = torch.searchsorted(self.kept.positions, rows)
        features, prior = self.spaces(self.kept.X[places])
        leverage = self._whiten(features).square().sum(0)[:, None]
        errors = (self.kept.labels[places] - features @ self.centre) / (1 - leverage)
        left_out = self._left_out_of((prior - features.square().sum(1)).clamp_min(0.0))
        return LeftOut(rows, errors, self.noise * leverage / (1 - leverage) + left_out)

    def influence(self, points: NewPoints) -> Tensor:
        """Of the kept rows, as if they were all. Shape (n_kept, n_points, n_outputs)."""
        own, _ = self.spaces(self.kept.X)
        effect = torch.cholesky_solve(self._features(points)[0].T, self.factor)  # (p, n_points)
        residual = self.kept.labels - own @ self.centre
        mean = torch.einsum("pk,pm->mk", self.centre, effect)  # Σ r φ of all rows is the coefficients themselves
        return self.n_rows * residual[:, None, :] * (own @ effect)[:, :, None] - mean

    def procedural_variance(self, points: NewPoints) -> Tensor:
        """Not known from sums: NaN. Shape (n_points,)."""
        return points.inputs.new_full((len(points),), torch.nan)

    def procedural_covariance(self, points: NewPoints) -> Tensor:
        """Not known from sums."""
        self._cannot("the law over seeds needs all rows at once: use solver='exact'")

    def handled(self, n_rows: int) -> str:
        """In sums."""
        return f"{n_rows:,} rows, summed up in the space of {landmarks_in_words(self.spaces.sizes)}"

    def conditions(self, probe: Probe) -> Iterable[Finding]:
        """Whether landmarks are many enough for what the function has."""
        features, _ = self._features(probe.points)
        left_out, known = self.missed_variance(probe.points).mean(), self._undetermined(features).mean()
        return [
            Finding(
                "variance that the landmarks leave out, over what the rows leave unknown",
                float(left_out / known.clamp_min(torch.finfo(known.dtype).tiny)),
                3.0,
                "the function has more structure than so many landmarks hold, or jumps: give solver=Landmarks(count=...) more "
                "of them, or solver='all_rows'",
                "The landmarks hold what the rows can say.",
                "Most of the interval's width is there because the landmarks are too few.",
            )
        ]

    def state(self) -> State:
        """Everything; triangles in half."""
        return {
            "kind": "landmarks",
            **self.spaces.state(),
            "factor": packed(self.factor),
            **{name: getattr(self, name) for name in ("coefficients", "centre", "noise", "residual", "missed")},
            **self.kept.state(),
            "n_rows": self.n_rows,
            "has_all_rows": self.has_all_rows,
        }

    @classmethod
    def restore(cls, record: Record, n_features: int, n_outputs: int, device: torch.device) -> LandmarkReplicates:
        """From `state`."""
        spaces = Spaces.restore(record, n_features, device)
        p = sum(spaces.sizes)
        factor = unpacked(record.tensor("factor", device, p * (p + 1) // 2), p)
        if not bool((factor.diagonal() > 0).all()):
            raise record.fault("a factor of the landmarks is singular")
        noise, residual, missed = (record.tensor(name, device, n_outputs) for name in ("noise", "residual", "missed"))
        return cls(
            spaces,
            factor,
            record.tensor("coefficients", device, None, p, n_outputs),
            record.tensor("centre", device, p, n_outputs),
            noise,
            residual,
            missed,
            KeptRows.restore(record, n_features, n_outputs, device),
            record.whole_number("n_rows", at_least=1),
            record.fact("has_all_rows", bool),
        )

    @property
    def numbers_per_point(self) -> int:
        """Its features, a few times."""
        return 4 * len(self.factor) + len(self.kept.X)

    @property
    def numbers_per_prediction(self) -> int:
        """The point, what kernels know of it alone, and its predictions."""
        return 16 * self.kept.X.shape[1] + self.coefficients.numel() // len(self.factor)

    def _features(self, points: NewPoints) -> tuple[Tensor, Tensor]:
        return points.once(self.spaces, "features", lambda: self.spaces(points.inputs))

    def _whiten(self, features: Tensor) -> Tensor:
        white: Tensor = torch.linalg.solve_triangular(self.factor, features.T, upper=False)
        return white

    def _undetermined(self, features: Tensor) -> Tensor:
        return self._whiten(features).square().sum(0)[:, None] * self.noise

    def _left_out_of(self, prior: Tensor) -> Tensor:
        return prior[:, None] * self.noise * self.missed
