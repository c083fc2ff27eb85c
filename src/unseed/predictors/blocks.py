"""Networks of many blocks: their average, their spread, and how they do on each other's rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from joblib import Parallel, delayed
from torch import Tensor

from unseed.engines import BlockFit, FullFit
from unseed.networks import MLP
from unseed.results import Estimate, FloatArray
from unseed.scaling import Scaling

_CHECKED_ROWS = 1000


@dataclass
class BlockNetworks:
    """One network for every block, all of the same kind and in the same units.

    Attributes
    ----------
    network : MLP
    scaling : Scaling
    device : torch device
    fits : list of BlockFit
    centre : FullFit or None
        The network on all rows, where there is one.
    n_jobs : int or None
        Blocks that predict at the same time.
    """

    network: MLP
    scaling: Scaling
    device: torch.device
    fits: list[BlockFit] = field(default_factory=list)
    centre: FullFit | None = None
    n_jobs: int | None = None

    def add(self, fit: BlockFit) -> None:
        """One more block; what was said about errors is forgotten."""
        self.fits.append(fit)
        self.__dict__.pop("out_of_block", None)

    @property
    def n_rows(self) -> int:
        """Of all blocks."""
        return sum(len(fit.X) for fit in self.fits)

    def inputs(self, X: FloatArray) -> Tensor:
        """Features in the network's units."""
        return torch.tensor(self.scaling.to_network(X), device=self.device)

    def predict(self, points: Tensor) -> FloatArray:
        """Predictions of every block at points in the network's units. Shape (n_blocks, n_points, n_outputs)."""
        tasks = (delayed(BlockFit.predict)(fit, self.network, points) for fit in self.fits)
        parts = Parallel(n_jobs=self.n_jobs, prefer="threads")(tasks)
        return self.scaling.from_labels(torch.stack(list(parts)).cpu().numpy())

    def estimate(self, X: FloatArray) -> Estimate:
        """Algorithm 2 around the mean of the blocks, or sectioning around the network on all rows."""
        points = self.inputs(X)
        predictions = self.predict(points)
        centre = predictions.mean(axis=0)
        if self.centre is not None:
            centre = self.scaling.from_labels(self.centre.predict(self.network, points).cpu().numpy())
        n_blocks = len(predictions)
        spread = np.sqrt(np.sum((predictions - centre) ** 2, axis=0) / (n_blocks - 1))
        return Estimate(centre, spread / np.sqrt(n_blocks), n_blocks - 1.0)

    @cached_property
    def out_of_block(self) -> OutOfBlock:
        """Errors of the other blocks' average at about a thousand rows of each block in turn."""
        share = max(1, _CHECKED_ROWS // len(self.fits))
        rows = [torch.linspace(0, len(fit.checked) - 1, min(share, len(fit.checked))).long() for fit in self.fits]
        points = torch.cat([fit.checked_rows[some] for fit, some in zip(self.fits, rows, strict=True)])
        labels = torch.cat([fit.checked[some] for fit, some in zip(self.fits, rows, strict=True)])
        own = np.repeat(np.arange(len(self.fits)), [len(some) for some in rows])
        predictions = self.predict(points)
        place = np.arange(len(own))
        others = (predictions.sum(axis=0) - predictions[own, place]) / (len(self.fits) - 1)
        without = np.ma.array(predictions, mask=np.zeros(predictions.shape, dtype=bool))
        without[own, place] = np.ma.masked
        spread = np.asarray(without.var(axis=0, ddof=1).filled(0.0)) if len(self.fits) > 2 else np.zeros_like(others)
        errors = self.scaling.from_labels(labels.cpu().numpy()) - others
        return OutOfBlock(errors, spread / (len(self.fits) - 1))


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
