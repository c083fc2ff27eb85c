"""Many rows, in pieces; replicates, and the paper's tables, on several processes."""

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import joblib
import numpy as np
from distributed import Client, LocalCluster

from unseed import MLP, Landmarks, PNCRegressor


def draw(n_rows, seed):
    """Rows and labels of a smooth function with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 4))
    return X, truth(X) + 0.1 * rng.standard_normal(n_rows)


def truth(X):
    """The function behind the data."""
    return np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def on_cluster(reg, X, y):
    """Fit with the replicates on the workers of the cluster that this process is connected to."""
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
    X, y = draw(20_000, seed=0)
    X_new = draw(200, seed=1)[0]
    network = MLP(activation="erf", bias_scale=1.0, scale_inputs=True)
    reg = PNCRegressor(network=network, solver=Landmarks(count=300), random_state=0)
    whole = reg.fit(X, y).get_prediction(X_new)
    pieces = [(X[start : start + 1_000], y[start : start + 1_000]) for start in range(0, 20_000, 1_000)]
    streamed = reg.fit_stream(pieces).get_prediction(X_new)
    later = reg.partial_fit(*draw(20_000, seed=2)).get_prediction(X_new)
    resampled = PNCRegressor(interval="cheap_bootstrap", network=network, regularization=1e-5, random_state=0)
    here = resampled.fit(X[:1_000], y[:1_000]).get_prediction(X_new)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        there = on_cluster(resampled, X[:1_000], y[:1_000]).get_prediction(X_new)
        with tempfile.TemporaryDirectory() as folder:
            files = reproduced(Path(folder), cluster.scheduler_address)

    print("| fit | RMSE | average width | f inside |")
    print("|---|---|---|---|")
    fits = {
        "20,000 rows": whole,
        "the same in pieces of 1,000": streamed,
        "20,000 more by `partial_fit`": later,
        "cheap bootstrap of 1,000 rows, in this process": here,
        "the same, on two workers": there,
    }
    for name, found in fits.items():
        print(f"| {name} | {figures(found, truth(X_new))} |")
    print("the same in pieces:", np.allclose(streamed.mean, whole.mean, rtol=0, atol=1e-9))
    print("the same on two workers:", np.allclose(here.mean, there.mean, rtol=1e-12))
    print(*files, sep="\n")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the scheduler, about ports and start-up
        main()
