"""Networks of many blocks: their average, their spread, and how they do on each other's rows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from joblib import delayed, parallel_config
from torch import Tensor

from unseed._results import Estimate, FloatArray
from unseed._scaling import Scaling
from unseed._state import Record, State
from unseed.engines import BlockFit, FullFit, StoredBlock, TrainedBlock
from unseed.engines._blocks import check_step
from unseed.networks import MLP
from unseed.tasks import outcomes

_CHECKED_ROWS = 1000
_GROUPS = 128  # of blocks that are one task of a prediction, at most


@dataclass
class Moments:
    """Mean and sum of squared deviations, added up without cancellation (Chan, Golub and LeVeque).

    Attributes
    ----------
    count : array of shape (n_points, 1)
        Networks that have been counted at each point.
    mean, squares : array of shape (n_points, n_outputs)

    Examples
    --------
    >>> moments = Moments.none(1, 1)
    >>> for value in (1.0, 2.0, 6.0):
    ...     moments.add(np.array([[value]]), np.ones((1, 1)))
    >>> float(moments.mean[0, 0]), float(moments.squares[0, 0])
    (3.0, 14.0)
    """

    count: FloatArray
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def none(cls, n_points: int, n_outputs: int) -> Self:
        """Nothing yet."""
        return cls(np.zeros((n_points, 1)), np.zeros((n_points, n_outputs)), np.zeros((n_points, n_outputs)))

    def add(self, values: FloatArray, counts: FloatArray) -> None:
        """One more network, at the points where it counts one and not where it counts zero."""
        self.merge(Moments(counts, values, np.zeros_like(values)))

    def merge(self, other: Moments) -> None:
        """Networks that were counted elsewhere."""
        total = np.maximum(self.count + other.count, 1.0)
        step = other.mean - self.mean
        self.squares = self.squares + other.squares + step**2 * (self.count * other.count / total)
        self.mean = self.mean + step * (other.count / total)
        self.count = self.count + other.count


@dataclass
class BlockNetworks:
    """One network for every block, all of the same kind and in the same units.

    Attributes
    ----------
    network : MLP
    scaling : Scaling
    device : torch device
    fits : list of BlockFit or StoredBlock
    centre : FullFit or None
        The network on all rows, where there is one.
    n_jobs : int or None
        Blocks that predict at the same time.
    """

    network: MLP
    scaling: Scaling
    device: torch.device
    fits: list[TrainedBlock] = field(default_factory=list)
    centre: FullFit | None = None
    n_jobs: int | None = None

    def add(self, fit: TrainedBlock) -> None:
        """One more block; what was said about errors is forgotten."""
        self.fits.append(fit)
        self.__dict__.pop("out_of_block", None)

    def keep(self, n_blocks: int) -> None:
        """Forget all blocks after so many."""
        del self.fits[n_blocks:]
        self.__dict__.pop("out_of_block", None)

    @property
    def n_rows(self) -> int:
        """Of all blocks."""
        return sum(map(len, self.fits))

    def inputs(self, X: FloatArray) -> Tensor:
        """Features in the network's units."""
        return torch.tensor(self.scaling.to_network(X), device=self.device)

    def state(self) -> State:
        """Rows, dual weights and labels kept of all blocks, one after the other; the network on all rows where there is one."""
        blocks = [fit.load() for fit in self.fits]
        return {
            "scaling": self.scaling.state(),
            "lengths": list(map(len, self.fits)),
            **{name: torch.cat([getattr(block, name) for block in blocks]) for name in ("X", "dual", "checked")},
            "has_centre": self.centre is not None,
            **({} if self.centre is None else self.centre.state()),
        }

    @classmethod
    def restore(cls, record: Record, network: MLP, device: torch.device, n_jobs: int | None) -> BlockNetworks:
        """From `state`: every block in memory of its own."""
        scaling, lengths = Scaling.restore(record.part("scaling")), record.fact("lengths", list)
        if len(lengths) < 2 or not all(type(length) is int and length > 0 for length in lengths):
            raise record.fault("lengths of blocks should be positive, and two of them at least")
        n, k = sum(lengths), scaling.n_outputs
        n_checked = [len(range(0, length, check_step(length))) for length in lengths]
        rows = record.tensor("X", device, n, *scaling.x_mean.shape)
        duals = torch.split(record.tensor("dual", device, n, k), lengths)
        labels = torch.split(record.tensor("checked", device, sum(n_checked), k), n_checked)
        parts = zip(torch.split(rows, lengths), duals, labels, strict=True)
        fits: list[TrainedBlock] = [BlockFit(X.clone(), dual.clone(), checked.clone()) for X, dual, checked in parts]
        centre = FullFit.restore(record, rows, k) if record.fact("has_centre", bool) else None
        return cls(network, scaling, device, fits, centre, n_jobs)

    def estimate(self, X: FloatArray) -> Estimate:
        """Algorithm 2 around the mean of the blocks, or sectioning around the network on all rows."""
        points = self.inputs(X)
        found = self._moments(points)
        n_blocks, centre, squares = len(self.fits), found.mean, found.squares
        if self.centre is not None:
            centre = self.scaling.from_labels(self.centre.predict(self.network, points))
            squares = squares + n_blocks * (found.mean - centre) ** 2
        return Estimate(centre, np.sqrt(squares / (n_blocks - 1) / n_blocks), n_blocks - 1.0)

    @cached_property
    def out_of_block(self) -> OutOfBlock:
        """Errors of the other blocks' average at about a thousand rows, of each block in turn or of as many blocks, evenly."""
        n_blocks = len(self.fits)
        chosen = np.unique(np.linspace(0, n_blocks - 1, min(n_blocks, _CHECKED_ROWS)).round().astype(int))
        looked_at = [self.fits[place].load().some_checked(max(1, _CHECKED_ROWS // n_blocks)) for place in chosen]
        points, labels = torch.cat([X for X, _ in looked_at]), torch.cat([y for _, y in looked_at])
        others = self._moments(points, own=np.repeat(chosen, [len(X) for X, _ in looked_at]))
        errors = self.scaling.from_labels(labels) - others.mean
        return OutOfBlock(errors, others.squares / max(n_blocks - 2, 1) / (n_blocks - 1))

    def _moments(self, points: Tensor, own: npt.NDArray[np.int64] | None = None) -> Moments:
        """Mean and spread of the blocks' predictions in the user's units; at a row of their own they do not count.

        Blocks are added up in as many groups for any number of workers, so that none changes the sum. Blocks in memory predict
        in this process, to which they need not be sent; of those in files a task is sent the names.
        """
        places = np.arange(len(self.fits))
        groups = np.array_split(places, min(len(places), _GROUPS))
        tasks = (
            delayed(_moments_of)([self.fits[place] for place in group], group, self.network, self.scaling, points, own)
            for group in groups
        )
        are_stored = any(isinstance(fit, StoredBlock) for fit in self.fits)
        total = Moments.none(len(points), len(self.scaling.y_mean))
        with nullcontext() if are_stored else parallel_config(backend="threading"):
            for found in outcomes(tasks, self.n_jobs, prefer="threads", ahead=2):
                total.merge(found)
        return total


def _moments_of(
    blocks: list[TrainedBlock],
    places: npt.NDArray[np.int64],
    network: MLP,
    scaling: Scaling,
    points: Tensor,
    own: npt.NDArray[np.int64] | None,
) -> Moments:
    """A task for any worker."""
    found = Moments.none(len(points), len(scaling.y_mean))
    for block, place in zip(blocks, places, strict=True):
        predictions = scaling.from_labels(block.load().predict(network, points))
        found.add(predictions, np.ones((len(points), 1)) if own is None else (own != place)[:, None].astype(np.float64))
    return found


@dataclass(frozen=True)
class OutOfBlock:
    """Errors at rows by networks that never saw them.

    Attributes
    ----------
    errors : array of shape (m, n_outputs)
        Label minus the average prediction of all other blocks.
    variance : array of shape (m, n_outputs)
        Of that average.
    """

    errors: FloatArray
    variance: FloatArray

    @property
    def noise_variance(self) -> FloatArray:
        """Mean squared error less what the blocks' spread explains, and all that no block can fit. Shape (n_outputs,)."""
        squares = (self.errors**2).mean(axis=0)
        return np.asarray(np.maximum(squares - self.variance.mean(axis=0), 0.01 * squares))

    @property
    def scores(self) -> FloatArray:
        """Errors over what is expected of them, sorted. Shape (m, n_outputs)."""
        expected = np.sqrt(self.variance + self.noise_variance)
        return np.sort(np.abs(self.errors) / np.maximum(expected, np.finfo(np.float64).tiny), axis=0)
