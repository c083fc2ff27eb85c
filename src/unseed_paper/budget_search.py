"""Search of the training time that would give the numbers which the paper prints.

``python -m unseed_paper.budget_search --out results/budget-search.json``. The authors' network (biases that start at zero,
λ = 1e-10) in closed form, trained by gradient flow: rate × steps is all that matters as long as the rate is small, and
one eigendecomposition for each data set serves every time.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import stats

from unseed import replaced
from unseed.kernels import nngp, ntk
from unseed_paper.preparation import REPLICATIONS, resample_counts
from unseed_paper.printed import printed_figures
from unseed_paper.problems import DIMENSIONS, Array, Synthetic, seed_of
from unseed_paper.protocols import PROTOCOLS, REGULARIZATION

INTERVAL_TIMES = tuple(
    float(t) for t in np.round(np.concatenate([np.geomspace(0.2, 0.8, 57), np.geomspace(1.6, 6553.6, 13)]), 4)
)
ERROR_TIMES = tuple(float(t) for t in np.round(np.geomspace(1, 64000, 65), 3))
AUTHORS_TIME = 0.8  # 80 steps of rate 0.01
_BATCHES = 4


def trained(gram: Array, cross: Array, counts: npt.NDArray[Any], labels: Array, times: tuple[float, ...]) -> Array:
    """What a network trained by gradient flow on the counted rows has learned of each label column.

    Shape (n_times, n_points, n_columns).
    """
    rows = np.flatnonzero(counts)
    n, root = counts.sum(), np.sqrt(counts[rows].astype(np.float64))
    eigenvalues, vectors = np.linalg.eigh(root[:, None] * gram[np.ix_(rows, rows)] * root)
    curvature = np.clip(eigenvalues, 0, None) / n + REGULARIZATION
    gains = -np.expm1(-2 * np.asarray(times)[:, None] * curvature) / (n * curvature)  # (n_times, n_rows)
    known = vectors.T @ (root[:, None] * labels[rows])
    reached = cross[:, rows] @ (root[:, None] * vectors)
    return np.asarray(np.einsum("pr,tr,rc->tpc", reached, gains, known, optimize=True))


def interval_study(setting: Synthetic, repetition: int) -> Array:
    """Centre and half width at x0 of batching and of the authors' bootstrap, for every time. Shape (2, 2, n_times)."""
    network = PROTOCOLS["authors-code"].network
    assert network is not None
    data, x0, seed = setting.sample(repetition), setting.places().X[:1], seed_of("search", setting.name, repetition)
    gram, cross, n = ntk(data.X, network=network), ntk(x0, data.X, network=network), setting.n
    rng, y = np.random.default_rng(seed), data.y[:, None]
    parts = np.zeros((_BATCHES, n), dtype=np.int64)
    for part, rows in zip(parts, np.array_split(rng.permutation(n), _BATCHES), strict=True):
        part[rows] = 1
    batches = np.stack([trained(gram, cross, part, y, INTERVAL_TIMES)[:, 0, 0] for part in parts])
    batching = batches.mean(axis=0), stats.t.ppf(0.975, _BATCHES - 1) * batches.std(axis=0, ddof=1) / np.sqrt(_BATCHES)
    full = trained(gram, cross, np.ones(n), y, INTERVAL_TIMES)[:, 0, 0]
    prior = nngp(data.X, network=network)
    starts = np.linalg.cholesky(prior + 1e-12 * np.trace(prior) * np.eye(n)) @ rng.standard_normal((n, REPLICATIONS))
    base, auxiliary = (resample_counts(n, seed, part) for part in ("base", "auxiliary"))
    replicates = np.stack(
        [
            trained(gram, cross, base[r], y - starts[:, [r]], INTERVAL_TIMES)[:, 0, 0]
            - trained(gram, cross, auxiliary[r], -starts[:, [r]], INTERVAL_TIMES)[:, 0, 0]
            for r in range(REPLICATIONS)
        ]
    )
    bootstrap = full, stats.t.ppf(0.975, REPLICATIONS) * np.sqrt(np.mean((replicates - full) ** 2, axis=0))
    return np.array([batching, bootstrap])


def error_study(setting: Synthetic, repetition: int) -> Array:
    """Mean square error of PNC on the test rows for every time. Shape (n_times,)."""
    network = PROTOCOLS["authors-code"].network
    assert network is not None
    data = setting.sample(repetition)
    gram, cross = ntk(data.X, network=network), ntk(data.X_test, data.X, network=network)
    predictions = trained(gram, cross, np.ones(setting.n), data.y[:, None], ERROR_TIMES)[:, :, 0]
    return np.asarray(np.mean((predictions - data.y_test) ** 2, axis=1))


def search_intervals(sizes: tuple[int, ...], repetitions: int, n_jobs: int) -> list[dict[str, Any]]:
    """For every row of table 3: figures at the authors' time, and at the time whose centre is the printed midpoint."""
    rows = []
    for setting in (Synthetic("synthetic-2", d, n) for d in DIMENSIONS for n in sizes):
        studies = np.array(Parallel(n_jobs)(delayed(interval_study)(setting, r) for r in range(repetitions)))
        truth = float(setting.places().truth[0])
        for index, method in enumerate(("pnc_batching", "pnc_cheap_bootstrap")):
            centre, half = studies[:, index, 0], studies[:, index, 1]  # (J, n_times)
            theirs = printed_figures("table-3", {"d": setting.d, "n": setting.n}, method)
            # the centre rises from zero to the mean of y and passes the printed midpoint on its way: the first time
            passed = np.flatnonzero(centre.mean(axis=0) >= theirs["mp"])
            usual = INTERVAL_TIMES.index(AUTHORS_TIME)
            coverage = (np.abs(centre - truth) <= half).mean(axis=0)
            rows.append(
                {
                    "d": setting.d,
                    "n": setting.n,
                    "method": method,
                    "truth": truth,
                    "printed": theirs,
                    "authors_budget": _figures(centre, half, usual, truth),
                    "matching": _figures(centre, half, int(passed[0]), truth) if len(passed) else None,
                    "best_coverage_after_1": float(coverage[np.asarray(INTERVAL_TIMES) > 1].max()),
                }
            )
    return rows


def search_errors(sizes: tuple[int, ...], repetitions: int, n_jobs: int) -> list[dict[str, Any]]:
    """For every row of tables 2 and 4: the time at which PNC's error falls to the printed one."""
    rows = []
    for table, function in (("table-2", "synthetic-1"), ("table-4", "synthetic-2")):
        for setting in (Synthetic(function, d, n) for d in DIMENSIONS for n in sizes):
            studies = np.array(Parallel(n_jobs)(delayed(error_study)(setting, r) for r in range(repetitions)))
            errors = studies.mean(axis=0)
            theirs = printed_figures(table, {"d": setting.d, "n": setting.n}, "pnc")["mean"]
            reached = errors <= theirs
            time = float(ERROR_TIMES[int(np.argmax(reached))]) if reached.any() else None
            rows.append({"table": table, "d": setting.d, "n": setting.n, "printed": theirs, "time": time})
    return rows


def _figures(centre: Array, half: Array, index: int, truth: float) -> dict[str, float]:
    covered = np.abs(centre[:, index] - truth) <= half[:, index]
    figures = {"cr95": covered.mean(), "iw95": 2 * half[:, index].mean(), "mp": centre[:, index].mean()}
    return {"time": INTERVAL_TIMES[index]} | {name: float(f"{value:.5g}") for name, value in figures.items()}


def main() -> None:
    """Search and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("budget-search.json"))
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--error-repetitions", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512, 1024])
    parser.add_argument("--n-jobs", type=int, default=-1)
    options = parser.parse_args()
    sizes = tuple(options.sizes)
    found = {
        "command": f"python -m unseed_paper.budget_search --repetitions {options.repetitions} "
        f"--error-repetitions {options.error_repetitions} --sizes {' '.join(map(str, sizes))}",
        "intervals": search_intervals(sizes, options.repetitions, options.n_jobs),
        "errors": search_errors(sizes, options.error_repetitions, options.n_jobs),
    }
    lines = json.dumps(found, indent=1, ensure_ascii=False)
    with replaced(options.out) as part:
        part.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
