"""Rows of any number, summed up in a space of landmarks: adding is the only operation, and cutting does not matter."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from unseed._resampling import Resamples, restore_plan
from unseed._solvers.evidence import Explained, equations_of, leading, likeliest_amplitudes, scaled
from unseed._solvers.landmarks import Space, Spaces
from unseed._solvers.primal import Sums
from unseed._state import Record, State
from unseed.engines._landmarks import KeptRows, LandmarkReplicates
from unseed.networks import MLP

ROWS_AT_A_TIME = 8192
_FEWEST_TO_BUY, _MOST_TO_BUY = 64, 16_384
_TRIAL_ROWS, _TRIAL_FEATURES = 4096, 1024


@dataclass(frozen=True)
class RowSums:
    """All that is known of the rows so far.

    Attributes
    ----------
    spaces : Spaces
        With amplitudes of one.
    plan : Plan or HashedPlan
        Which replicate counts which row how often.
    kept : KeptRows
    summands : tuple of Sums
        What the plan makes its replicates of; empty before the first row.
    n_rows : int
    """

    spaces: Spaces
    plan: Resamples
    kept: KeptRows
    summands: tuple[Sums, ...] = ()
    n_rows: int = 0

    @classmethod
    def none(cls, spaces: Spaces, plan: Resamples, n_outputs: int) -> RowSums:
        """Before the first row."""
        like = spaces.spaces[0].landmarks
        nowhere = torch.zeros(0, dtype=torch.int64, device=like.device)
        return cls(spaces, plan, KeptRows(nowhere, like[:0], like.new_zeros(0, n_outputs)))

    def plus(self, X: Tensor, labels: Tensor) -> RowSums:
        """With further rows (n, d) and labels (n, n_outputs), all at once: give `ROWS_AT_A_TIME` or so."""
        stop = self.n_rows + len(X)
        features = self.spaces.bare(X)
        added = []
        for weights in torch.from_numpy(self.plan.weights(self.n_rows, stop)).to(X):
            rows = weights.nonzero()[:, 0]
            added.append(Sums.of(features[rows], labels[rows], weights[rows]))
        summands = tuple(a + b for a, b in zip(self.summands, added, strict=True)) if self.summands else tuple(added)
        return RowSums(self.spaces, self.plan, self.kept.plus(X, labels, self.n_rows), summands, stop)

    def before(self, start: int) -> RowSums:
        """With no row yet, and ready for those that stand at ``start`` and after."""
        kept = KeptRows(self.kept.positions[:0], self.kept.X[:0], self.kept.labels[:0])
        return replace(self, kept=kept, summands=(), n_rows=start)

    def without_spaces(self) -> RowSums:
        """To be added to sums that have the spaces."""
        return replace(self, spaces=Spaces([], self.spaces.amplitudes[:0]))

    def __add__(self, other: RowSums) -> RowSums:
        """Of these rows and later ones, in the same spaces."""
        both = zip(self.summands, other.summands, strict=True) if self.summands and other.summands else ()
        summands = tuple(a + b for a, b in both) or self.summands or other.summands
        return replace(self, kept=self.kept + other.kept, summands=summands, n_rows=max(self.n_rows, other.n_rows))

    def state(self) -> State:
        """Everything; matrices in half."""
        summands = {str(place): one.state() for place, one in enumerate(self.summands)}
        rows = {"kept": self.kept.state(), "n_rows": self.n_rows, "summands": summands}
        return {"spaces": self.spaces.state(), "plan": self.plan.state(), **rows}

    @classmethod
    def restore(cls, record: Record, n_features: int, n_outputs: int, device: torch.device) -> RowSums:
        """From `state`."""
        spaces = Spaces.restore(record.part("spaces"), n_features, device)
        plan, kept = restore_plan(record.part("plan")), KeptRows.restore(record.part("kept"), n_features, n_outputs, device)
        parts = record.part("summands")
        summands = tuple(
            Sums.restore(parts.part(str(place)), sum(spaces.sizes), n_outputs, device) for place in range(len(parts.facts))
        )
        n_rows = record.whole_number("n_rows")
        if summands and len(plan.summed(summands)) != plan.n_replicates:
            raise record.fault("the sums are not those of the plan")
        return cls(spaces, plan, kept, summands, n_rows)

    def fitted(self, start: Sequence[float], given: float | None = None) -> LandmarkReplicates:
        """Networks of every replicate.

        Amplitudes are ``given`` times those of ``start``, or those that all rows speak for, looked for from there on.
        """
        replicates = self.plan.summed(self.summands)
        total = reduce(Sums.__add__, (replicates[r] for r in self.plan.reference))
        if given is None:
            amplitudes = likeliest_amplitudes(total, self.spaces, start)
        else:
            amplitudes = torch.tensor(start).to(total.inner) * (given / start[0])
        spaces = replace(self.spaces, amplitudes=amplitudes)
        explained = Explained.of(scaled(total, spaces.scales))
        coefficients = [
            equations_of(scaled(one, spaces.scales), one.weight / total.weight).solve(spaces.scales[:, None] * one.cross)
            for one in replicates
        ]
        half = Explained.of(leading(explained.sums, spaces.leading))
        return LandmarkReplicates(
            spaces,
            explained.equations.factor,
            torch.stack(coefficients),
            explained.coefficients.clone(memory_format=torch.contiguous_format),
            explained.noise,
            explained.residual_variance(),
            _missed_share(spaces, explained, half, self.kept.X),
            self.kept,
            self.n_rows,
            len(self.plan.reference) == 1,
        )


def _missed_share(spaces: Spaces, whole: Explained, half: Explained, X: Tensor) -> Tensor:
    """How much of what half of the landmarks leave out, over the other half, the function turned out to have.

    The fit with all landmarks differs from that with half of them by what the second half has found. Its prior expects the
    mean square of that difference to be the variance that it takes away; the ratio is what the function has of it, and what
    it will have of the variance that is left. No further pass over the rows: the half's sums are a corner of the whole's.
    A ratio of m squares is known to a share of √(2/m), by which it is raised.
    """
    features, _ = spaces(X)
    few = features[:, spaces.leading]
    found = (features @ whole.coefficients - few @ half.coefficients).square().mean(0)
    expected = (features.square().sum(1) - few.square().sum(1)).mean() * whole.noise
    raised = 1 + math.sqrt(2 / max(1, features.shape[1] - few.shape[1]))
    return (raised * found / expected.clamp_min(torch.finfo(found.dtype).tiny)).clamp_max(1.0)


def landmark_count(n_rows: int, n_spaces: int, device: torch.device, seconds: float | None = None) -> int:
    """Landmarks of each space: as many as keep the sums to a minute or so on two cores, a few seconds on a GPU.

    Or to the seconds that are given, by a trial of how fast rows are added up here.
    """
    fewest, most, budget = (2048, 4096, 6.8e13) if device.type == "cuda" else (512, 1536, 1.0e12)
    if seconds is not None:
        fewest, most, budget = _FEWEST_TO_BUY, _MOST_TO_BUY, seconds / _seconds_of_a_product(device)
    return int(min(most, max(fewest, math.sqrt(budget / n_rows) / n_spaces)))


def _seconds_of_a_product(device: torch.device) -> float:
    """Of adding up rows, for every row and pair of features: whitening and sums, the quicker of two goes."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(_TRIAL_ROWS, _TRIAL_FEATURES, generator=generator, dtype=torch.float64).to(device)
    root, weights = torch.eye(_TRIAL_FEATURES).to(features), torch.ones(_TRIAL_ROWS).to(features)
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        white = torch.linalg.solve_triangular(root, features, upper=True, left=False)
        float(Sums.of(white, features[:, :1], weights).inner[0, 0])  # waits for a GPU
        taken.append(time.perf_counter() - start)
    return min(taken) / features.numel() / _TRIAL_FEATURES


def spaces_among(candidates: Tensor, networks: Sequence[MLP], count: int) -> Spaces:
    """A space for each network, with landmarks among the same rows."""
    spaces = [Space.among(network, candidates, count) for network in networks]
    return Spaces(spaces, torch.ones(len(spaces)).to(candidates))
