"""More rows than one network can take, on several processes: blocks, a cluster, rows that arrive later, the paper's tables."""

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.base import clone

from unseed import MLP, BlockwisePNCRegressor


def draw(n_rows, seed):
    """Rows and labels of a smooth function with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 4))
    return X, truth(X) + 0.1 * rng.standard_normal(n_rows)


def truth(X):
    """The function behind the data."""
    return np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def on_cluster(reg, X, y):
    """Fit with the blocks on the workers of the cluster that this process is connected to."""
    with joblib.parallel_config(backend="dask"):
        return reg.fit(X, y)


def reproduced(folder, address):
    """A small part of the paper's first table, its repetitions on the workers of the scheduler at that address."""
    part = ["--protocol", "authors-code", "--methods", "batching", "--sizes", "128", "--dimensions", "2", "--repetitions", "5"]
    command = ["unseed", "reproduce", "table-1", *part, "--out", str(folder), "--cluster", address]
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    return sorted(path.name for path in folder.iterdir())


def figures(found, f):
    """Error, width and coverage of a prediction, as cells of a table."""
    low, high = found.conf_int(0.95).T
    inside = np.mean((low <= f) & (f <= high))
    return f"{np.sqrt(np.mean((found.mean - f) ** 2)):.3f} | {np.mean(high - low):.2f} | {inside:.2f}"


def main():
    """Workers are processes, which import this file: what they shall not do again stands here."""
    X, y = draw(8_000, seed=0)
    X_new = draw(200, seed=1)[0]
    network = MLP(activation="erf", bias_scale=1.0, scale_inputs=True)
    reg = BlockwisePNCRegressor(block_size=1_000, network=network, regularization=1e-6, random_state=0)
    stiff = clone(reg).set_params(regularization=1e-4).fit(X, y).get_prediction(X_new)
    here = reg.fit(X, y).get_prediction(X_new)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        there = on_cluster(reg, X, y).get_prediction(X_new)
        with tempfile.TemporaryDirectory() as folder:
            files = reproduced(Path(folder), cluster.scheduler_address)
    later = reg.partial_fit(*draw(8_000, seed=2)).get_prediction(X_new)  # eight more blocks; the old ones stay as they are

    print("| fit | RMSE | average width | f inside |")
    print("|---|---|---|---|")
    fits = {
        "8 blocks of 1,000 rows, in this process": here,
        "the same, on two workers": there,
        "8 blocks added by `partial_fit`": later,
        "the first 8 blocks with λ = 1e-4 instead of 1e-6": stiff,
    }
    for name, found in fits.items():
        print(f"| {name} | {figures(found, truth(X_new))} |")
    print("the same on two workers:", np.allclose(here.mean, there.mean, rtol=1e-12))
    print(*files, sep="\n")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the scheduler, about ports and start-up
        main()
