"""What a file says of its size is not allocated unless the machine has it."""

from __future__ import annotations

import torch

from unseed._machine import available_bytes, gigabytes
from unseed.errors import InvalidInputError


def check_fits(source: str, n_bytes: int, needed_per_byte: int = 1) -> None:
    """Refuse a file that unpacks to more than the memory that is left."""
    if n_bytes < 0 or n_bytes * needed_per_byte > available_bytes(torch.device("cpu")):
        raise InvalidInputError(
            f"{source} unpacks to {gigabytes(n_bytes)} by its own account, more than this machine has memory for; "
            "give it in parts"
        )
