"""What a file needs of the machine: memory for what it says of its size, and the package that reads it."""

from __future__ import annotations

import importlib.util

from unseed.errors import InvalidInputError


def check_fits(source: str, n_bytes: int, needed_per_byte: int = 1) -> None:
    """Refuse a file that unpacks to more than the memory that is left: what it says of its size is not allocated untested."""
    import torch

    from unseed._machine import available_bytes, gigabytes

    if n_bytes < 0 or n_bytes * needed_per_byte > available_bytes(torch.device("cpu")):
        raise InvalidInputError(
            f"{source} unpacks to {gigabytes(n_bytes)} by its own account, more than this machine has memory for; "
            "give it in parts"
        )


def check_installed(package: str, files: str, extra: str) -> None:
    """Refuse files whose package is not there, and say how to get it."""
    if importlib.util.find_spec(package) is None:
        raise InvalidInputError(f"{files} need {package}; install it with: pip install 'unseed[{extra}]'")
