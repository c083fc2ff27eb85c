"""Accuracy and prediction intervals on the UCI sets: random 90/10 splits, defaults, no tuning.

    UNSEED_DATA=/folder/with/csv/files python benchmarks/uci.py boston concrete --splits 10

RMSE is compared with published Monte Carlo dropout (Gal and Ghahramani 2016), coverage with 95 %. Above `--max-rows`
training rows a random subset is fitted: the kernel engine keeps a matrix of rows by rows.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed

from unseed import PNCRegressor

TARGETS = {
    "boston": ("medv", 2.90),
    "concrete": ("strength", 4.82),
    "energy": ("heating_load", 0.54),
    "yacht": ("residuary_resistance", 0.67),
    "kin8nm": ("y", 0.08),
    "power": ("pe", 4.01),
    "wine-red": ("quality", 0.62),
    "naval": ("kmc", None),
    "protein": ("rmsd", None),
}
OTHER_TARGETS = ("cooling_load", "kmt")


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    path = Path(os.environ.get("UNSEED_DATA", "../shared/data")) / f"{name}.csv"
    if not path.exists():
        raise SystemExit(f"{path} is not there; set UNSEED_DATA to the folder with the CSV files")
    with path.open() as file:
        header = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",")
    target = TARGETS[name][0]
    features = [i for i, column in enumerate(header) if column != target and column not in OTHER_TARGETS]
    return table[:, features], table[:, header.index(target)]


def split(name: str, seed: int, max_rows: int) -> dict:
    torch.set_num_threads(1)
    X, y = load(name)
    order = np.random.default_rng(seed).permutation(len(X))
    held = len(X) // 10
    test, train = order[:held][:2000], order[held:][:max_rows]
    start = time.perf_counter()
    reg = PNCRegressor(random_state=seed, device="cpu").fit(X[train], y[train])
    seconds = time.perf_counter() - start
    prediction = reg.get_prediction(X[test])
    lower, upper = prediction.pred_int(0.95).T
    return {
        "name": name,
        "seed": seed,
        "rows": len(train),
        "rmse": float(np.sqrt(np.mean((prediction.mean - y[test]) ** 2))),
        "picp": float(np.mean((lower <= y[test]) & (y[test] <= upper))),
        "width": float(np.mean(upper - lower)),
        "fit_seconds": round(seconds, 1),
        "network": f"{reg.network_.activation} {reg.network_.depth}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(TARGETS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--max-rows", type=int, default=9000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--records", type=Path)
    options = parser.parse_args()
    for name in options.names:
        runs = Parallel(n_jobs=options.jobs)(delayed(split)(name, seed, options.max_rows) for seed in range(options.splits))
        if options.records:
            with options.records.open("a") as file:
                file.writelines(json.dumps(run) + "\n" for run in runs)
        mean = {key: np.mean([run[key] for run in runs]) for key in ("rows", "rmse", "picp", "width", "fit_seconds")}
        limit = TARGETS[name][1]
        verdict = "" if limit is None else f"(limit {limit}: {'ok' if mean['rmse'] <= limit else 'MISSED'})"
        print(
            f"{name:9} rows {mean['rows']:6.0f}  RMSE {mean['rmse']:.4g} {verdict}  PICP {mean['picp']:.3f}  "
            f"width {mean['width']:.4g}  fit {mean['fit_seconds']:.1f} s  {sorted({run['network'] for run in runs})}",
            flush=True,
        )


if __name__ == "__main__":
    main()
