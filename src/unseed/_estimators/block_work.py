"""How blocks become networks: by how many workers, on how many threads, and where they are kept."""

from __future__ import annotations

import tempfile
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from joblib import delayed
from joblib.parallel import get_active_backend
from torch import Tensor

from unseed._machine import available_bytes
from unseed._threads import one_thread
from unseed.engines import BlockFit, TrainedBlock, store_block
from unseed.errors import InvalidInputError
from unseed.networks import MLP
from unseed.tasks import outcomes


def workers_for(n_jobs: int | None, device: torch.device, block_size: int) -> int | None:
    """Blocks at a time: of oneself as many as there are workers, or cores and memory for, each on one thread."""
    if n_jobs is not None or device.type != "cpu":
        return n_jobs
    backend, asked = get_active_backend(prefer="threads")
    if not getattr(backend, "supports_sharedmem", False):
        return -1 if asked is None else asked  # Ray takes None for one
    fitting = available_bytes(device) // 4 // (16 * block_size**2)
    return max(1, min(torch.get_num_threads(), fitting))


def threads_beside(n_jobs: int | None) -> AbstractContextManager[None]:
    """Blocks at the same time have one thread each; one after the other they have all."""
    return nullcontext() if n_jobs in (None, 1) else one_thread()


@dataclass(frozen=True)
class BlockWork:
    """What all blocks have in common.

    Attributes
    ----------
    network : MLP
    regularization : float
        λ_n.
    is_mixed : bool
        Whether a float32 factor may do.
    n_jobs : int or None
    folder : Path or None
        Where trained blocks are written; None keeps them in memory.
    """

    network: MLP
    regularization: float
    is_mixed: bool
    n_jobs: int | None
    folder: Path | None

    def train(self, blocks: Iterable[tuple[Tensor, Tensor]], n_before: int) -> Iterator[TrainedBlock]:
        """Networks of blocks (features, labels) in their order, later blocks being read and solved meanwhile."""
        with threads_beside(self.n_jobs):
            yield from self._in_memory(blocks) if self.folder is None else self._in_files(blocks, self.folder, n_before)

    def _in_memory(self, blocks: Iterable[tuple[Tensor, Tensor]]) -> Iterator[TrainedBlock]:
        """Workers are sent rows and send weights back; the rows stay here."""
        rows: deque[Tensor] = deque()

        def tasks() -> Iterator[Any]:
            for X, labels in blocks:
                rows.append(X)
                yield delayed(BlockFit.weights)(self.network, X, labels, self.regularization, is_mixed=self.is_mixed)

        for dual, checked in self._outcomes(tasks()):
            yield BlockFit(rows.popleft(), dual, checked)

    def _in_files(self, blocks: Iterable[tuple[Tensor, Tensor]], folder: Path, n_before: int) -> Iterator[TrainedBlock]:
        """Workers write what they have solved; names that no copy of this estimator will use too."""
        tasks = (
            delayed(store_block)(
                *(self.network, X, labels, self.regularization),
                is_mixed=self.is_mixed,
                path=folder / f"{number:09}-{uuid.uuid4().hex[:12]}.safetensors",
            )
            for number, (X, labels) in enumerate(blocks, start=n_before)
        )
        yield from self._outcomes(tasks)

    def _outcomes(self, tasks: Iterable[Any]) -> Iterator[Any]:
        return outcomes(tasks, self.n_jobs, prefer="threads", ahead=2)


def new_folder(folder: str | Path) -> Path:
    """A folder within that one for the blocks of one fit: those of others stay as they are."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="blocks-", dir=Path(folder).resolve()))
    except OSError as error:
        raise InvalidInputError(
            f"folder={str(folder)!r} is not a folder that can be written: {error.strerror or error}; "
            "choose another, or None for memory"
        ) from error
