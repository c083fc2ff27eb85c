"""Blocks in files: in memory only while they are looked at, so that memory does not grow with the number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from unseed._files import replaced
from unseed.engines._blocks import BlockFit
from unseed.errors import ModelFileError
from unseed.networks import MLP


@dataclass(frozen=True)
class StoredBlock:
    """A block whose rows and dual weights are in a file. A task that has it is sent the file's name, and no numbers.

    Attributes
    ----------
    path : Path
    n_rows : int
    device : torch device
        Where the numbers are wanted.
    """

    path: Path
    n_rows: int
    device: torch.device

    @classmethod
    def write(cls, fit: BlockFit, path: Path) -> StoredBlock:
        """Store a block; a file of that name is replaced when the new one is complete."""
        try:
            with replaced(path) as part:
                save_file({"X": fit.X.contiguous(), "dual": fit.dual, "checked": fit.checked}, part)
        except (OSError, SafetensorError) as error:
            raise ModelFileError(
                f"a block could not be written to {str(path)!r} ({error}); the folder must have room, and workers must see it"
            ) from error
        return cls(path, len(fit), fit.X.device)

    def __len__(self) -> int:
        return self.n_rows

    def load(self) -> BlockFit:
        """The block in memory, as long as it is held."""
        try:
            return BlockFit(**load_file(self.path, device=str(self.device)))
        except (OSError, SafetensorError, TypeError) as error:
            raise ModelFileError(
                f"a block of this model should be in {str(self.path)!r} and cannot be read ({error}); the folder must stay "
                "where it is as long as the model is used, and every worker must see it"
            ) from error


TrainedBlock = BlockFit | StoredBlock


def store_block(network: MLP, X: Tensor, labels: Tensor, regularization: float, *, is_mixed: bool, path: Path) -> StoredBlock:
    """A task for any worker: train on one block and write what has come of it."""
    return StoredBlock.write(BlockFit.solve(network, X, labels, regularization, is_mixed=is_mixed), path)
