"""One side of the comparison: fit every configuration with the unseed that is on the path, and keep what it answers."""

import multiprocessing
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import torch

import unseed
from same_numbers.configurations import EXACT, TOLERANCES, TRAINED


def main(folder: Path, processes: int, only: list[str]) -> None:
    """Answer the configurations whose names begin with one of ``only`` and that have no answers here yet."""
    names = [name for name in TOLERANCES if name.startswith(tuple(only)) and not (folder / f"{name}.npz").exists()]
    torch.set_num_threads(1)
    unseed.PNCRegressor()  # loads the library: every process begins with it, and with nothing that another has computed
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        for _ in pool.imap_unordered(answer, [(folder, name) for name in names]):
            pass


def answer(asked: tuple[Path, str]) -> None:
    """Write the answers of one configuration, or why there are none."""
    folder, name = asked
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = (EXACT | TRAINED)[name]()
        found["tolerance"] = np.array(TOLERANCES[name])
    except Exception as error:
        traceback.print_exc()
        found = {"failed": np.array(f"{type(error).__name__}: {error}")}
    np.savez_compressed(folder / f"{name}.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
