"""Do the numbers stay? Every configuration is fitted with the commit before and with the working tree, and compared.

    make same-numbers                                             everything
    python tests/same_numbers/compare.py --only kernel-truth      some of it (any name that begins so)
    python tests/same_numbers/compare.py -n 2 --before PATH       two processes at a time, the commit before being there already

The commit before is checked out into ``.same-numbers/``, where its answers are kept as well: they are computed again only when
a configuration has changed. Every configuration has a process of its own, with one thread, so that sums are added in the same
order. Predictions, intervals, components, joint laws, diagnoses, reports, forecasts and files must be the same to ten digits,
those of networks that are trained or chosen to six. It is a script, not a test: it needs the history of the repository.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

BEFORE = "63a9380"
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / ".same-numbers"
SMALL = 1e-4
"""Numbers of an array are compared relative to themselves, but no smaller than this share of its largest."""

Difference = tuple[float, str]


def main() -> int:
    """Compare, print a table, and say by the exit code whether all numbers stayed."""
    options = _options()
    before = options.before or _checkout(options.commit)
    sides = {"before": (before, KEPT / f"before-{_fingerprint(options.commit)}"), "now": (ROOT, KEPT / "now")}
    for folder in (KEPT / "now").glob("*.npz"):
        folder.unlink()
    for name, (source, folder) in sides.items():
        print(f"{name}: {source}", flush=True)
        _run(source, folder, options.only, options.n)
    names = sorted(path.stem for path in sides["now"][1].glob("*.npz"))
    failed = [name for name in names if not _print_compared(name, *(folder / f"{name}.npz" for _, folder in sides.values()))]
    print(
        f"{len(names) - len(failed)} of {len(names)} configurations have the same numbers" if names else "nothing was compared"
    )
    return int(bool(failed) or not names)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], metavar="NAME", help="configurations whose names begin so")
    parser.add_argument("-n", type=int, default=1, help="processes at a time")
    parser.add_argument("--commit", default=BEFORE, help="to compare with")
    parser.add_argument("--before", type=Path, help="a checkout of that commit")
    return parser.parse_args()


def _checkout(commit: str) -> Path:
    path = KEPT / commit
    if not path.exists():
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
        subprocess.run(["git", "worktree", "add", "--detach", str(path), commit], cwd=ROOT, check=True)
    return path


def _fingerprint(commit: str) -> str:
    """Of what is asked: answers to other questions are not comparable."""
    text = b"".join((HERE / name).read_bytes() for name in ("configurations.py", "quantities.py", "surfaces.py"))
    return f"{commit}-{hashlib.sha256(text).hexdigest()[:12]}"


def _run(source: Path, folder: Path, only: list[str], processes: int) -> None:
    """Answers of one side, those that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    paths = os.pathsep.join([str(source / "src"), str(ROOT / "tests")])
    command = [sys.executable, "-m", "same_numbers.answer", str(folder), str(processes), *only]
    subprocess.run(command, env=os.environ | threads | {"PYTHONPATH": paths}, cwd=folder, check=True)


def _print_compared(name: str, before: Path, now: Path) -> bool:
    """One line of the table; the quantities that differ below it."""
    if not before.exists():
        print(f"{name:34} has no answers from before")
        return False
    old, new = (dict(np.load(path)) for path in (before, now))
    if "failed" in old or "failed" in new:
        print(f"{name:34} {'before' if 'failed' in old else 'now'}: {(old if 'failed' in old else new)['failed']}")
        return False
    tolerance = float(new.pop("tolerance"))
    old.pop("tolerance")
    differences = sorted((_difference(old, new, key) for key in old.keys() | new.keys()), reverse=True)
    too_large = [difference for difference in differences if not difference[0] <= tolerance]
    print(f"{name:34} {len(differences):5d} quantities   {differences[0][0]:8.1e}   {'DIFFERS' if too_large else 'same'}")
    for size, key in too_large[:8]:
        print(f"    {key:60} {size:8.1e}   {_first(old, key)} -> {_first(new, key)}")
    if len(too_large) > 8:
        print(f"    … and {len(too_large) - 8} more")
    return not too_large


def _difference(old: dict[str, np.ndarray], new: dict[str, np.ndarray], key: str) -> Difference:
    """Largest relative difference of a quantity; infinite where it is missing, has another shape, or is another word."""
    if key not in old or key not in new or old[key].shape != new[key].shape or old[key].dtype.kind != new[key].dtype.kind:
        return np.inf, key
    one, other = old[key], new[key]
    if one.dtype.kind in "US":
        return (0.0 if (one == other).all() else np.inf), key
    known = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~known], other[~known], equal_nan=True):
        return np.inf, key
    if not known.any():
        return 0.0, key
    one, other = one[known], other[known]
    scale = np.maximum(np.abs(one), SMALL * np.abs(one).max())
    return float((np.abs(one - other) / np.where(scale > 0, scale, 1.0)).max()), key


def _first(found: dict[str, np.ndarray], key: str) -> str:
    if key not in found:
        return "missing"
    values = found[key].ravel()
    shown = ", ".join(str(value) if found[key].dtype.kind in "US" else f"{value:.6g}" for value in values[:3])
    return f"{shown}{' …' if len(values) > 3 else ''} {found[key].shape}"


if __name__ == "__main__":
    sys.exit(main())
