"""How well probabilities of classes are covered by their intervals, how wide these are, and how good the probabilities are.

    python benchmarks/classes.py --rows 128 512 --repetitions 4
    python benchmarks/classes.py --functions rare steep --rows 512 --methods unseed

A line of `--out` is a data set and a method; lines that are there are not measured again. Peers: scikit-learn's
Gaussian process with a length scale per feature and the interval of its latent function, and a logistic regression on cubic
splines with Wald's. `classes_page.py` writes the tables of docs/classes.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

OUT = Path(__file__).parent.parent / "results" / "classes.json"
POINTS, ORACLE = 1000, 1.96
Array = npt.NDArray[np.float64]
Record = dict[str, Any]


class Problem(NamedTuple):
    """Logits of the classes but the first, of features that are uniform with variance one; and in a few words what is hard."""

    d: int
    logits: Callable[[Array], Array]
    words: str
    classes: int = 2


def _columns(*columns: Array) -> Array:
    return np.stack(np.broadcast_arrays(*columns), axis=1)


PROBLEMS: dict[str, Problem] = {
    "null": Problem(3, lambda X: _columns(0 * X[:, 0] - 0.8), "31 % everywhere"),
    "rare": Problem(2, lambda X: _columns(-4.7 + 1.2 * X[:, 0] + 0.5 * np.sin(2 * X[:, 1])), "2 % on average"),
    "steep": Problem(1, lambda X: _columns(6 * np.tanh(2 * X[:, 0])), "from 0 to 1 within a fifth of the range"),
    "flat": Problem(2, lambda X: _columns(0.5 * np.sin(1.5 * X[:, 0])), "between 38 and 62 %"),
    "wave": Problem(1, lambda X: _columns(2 * np.sin(4 * X[:, 0])), "two periods"),
    "ring": Problem(2, lambda X: _columns(2.5 - 1.5 * (X**2).sum(1)), "high in the middle"),
    "product": Problem(4, lambda X: _columns(1.5 * X[:, 0] * X[:, 1] + X[:, 2]), "an interaction"),
    "additive": Problem(
        6, lambda X: _columns(1.5 * np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + X[:, 2] - 0.5 * X[:, 3]), "six features, four used"
    ),
    "ridge": Problem(12, lambda X: _columns(3 * np.tanh(X[:, :6].sum(1) / 2)), "twelve features, one direction"),
    "wide": Problem(20, lambda X: _columns(1.5 * X[:, 0] - X[:, 1]), "twenty features, two used"),
    "kink": Problem(2, lambda X: _columns(3 * np.abs(X[:, 0]) - 2.5 + X[:, 1] * (X[:, 1] > 0)), "kinks in the log-odds"),
    "three": Problem(2, lambda X: _columns(1.5 * np.sin(2 * X[:, 0]), 1.5 * X[:, 1]), "three classes", classes=3),
    "five": Problem(
        3,
        lambda X: _columns(X[:, 0], X[:, 1], 2 * X[:, 0] * X[:, 2], -1 - X[:, 2]),
        "five classes, one of them rare",
        classes=5,
    ),
}


def probabilities(problem: Problem, X: Array) -> Array:
    """Of all classes. Shape (n, n_classes)."""
    logits = problem.logits(X)
    return softmax(np.hstack([np.zeros((len(X), 1)), logits]), axis=1)


def draw(name: str, n: int, seed: int) -> tuple[Array, npt.NDArray[np.int64], Array, Array]:
    """Rows and labels in which every class occurs, new points, and the truth there."""
    problem = PROBLEMS[name]
    rng = np.random.default_rng([seed, n, sum(map(ord, name))])
    while True:
        X, X_new = (np.sqrt(3) * rng.uniform(-1, 1, (rows, problem.d)) for rows in (n, POINTS))
        y = (rng.random((n, 1)) > probabilities(problem, X).cumsum(1)).sum(1)
        if len(np.unique(y)) == problem.classes:
            return X, y, X_new, probabilities(problem, X_new)


class Answer(NamedTuple):
    """Probabilities, and bounds where a method has them."""

    mean: Array
    bounds: Array | None = None  # (points, classes, 2)


def with_unseed(X: Array, y: Array, X_new: Array) -> Answer:
    from unseed import PNCClassifier

    mean, bounds = PNCClassifier(random_state=0).fit(X, y).predict_interval(X_new, 0.95)
    return Answer(mean, bounds[..., 0])


def with_gaussian_process(X: Array, y: Array, X_new: Array) -> Answer:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.ones(X.shape[1]), (1e-2, 1e3))
    gp = GaussianProcessClassifier(kernel, random_state=0).fit(X, y)
    mean = gp.predict_proba(X_new)
    if len(gp.classes_) > 2:
        return Answer(mean)
    f, variance = gp.latent_mean_and_variance(X_new)
    return Answer(mean, _both(f, np.sqrt(np.maximum(variance, 0))))


def with_splines(X: Array, y: Array, X_new: Array) -> Answer:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import SplineTransformer

    splines = SplineTransformer(n_knots=5, degree=3, include_bias=False, extrapolation="linear").fit(X)
    Z, Z_new = splines.transform(X), splines.transform(X_new)
    reg = LogisticRegression(C=10.0, max_iter=2000).fit(Z, y)
    mean = reg.predict_proba(Z_new)
    if len(reg.classes_) > 2:
        return Answer(mean)
    design, new = (np.hstack([np.ones((len(rows), 1)), rows]) for rows in (Z, Z_new))
    p = expit(design @ np.append(reg.intercept_, reg.coef_))
    information = (design * (p * (1 - p))[:, None]).T @ design + np.diag(np.append(1e-8, np.full(Z.shape[1], 0.1)))
    error = np.sqrt(np.maximum((new * np.linalg.solve(information, new.T).T).sum(1), 0))
    return Answer(mean, _both(new @ np.append(reg.intercept_, reg.coef_), error))


def _both(f: Array, error: Array) -> Array:
    low, high = f - ORACLE * error, f + ORACLE * error
    return np.stack([expit(np.stack([-high, -low], 1)), expit(np.stack([low, high], 1))], axis=1)


METHODS: dict[str, Callable[[Array, Array, Array], Answer]] = {
    "unseed": with_unseed,
    "gaussian process": with_gaussian_process,
    "splines": with_splines,
}


def measured(name: str, n: int, seed: int, method: str) -> Record:
    """One data set, one method."""
    X, y, X_new, truth = draw(name, n, seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean, bounds = METHODS[method](X, y, X_new)
    seconds = time.perf_counter() - start
    floor = np.clip(mean, 1e-12, 1)
    record: Record = {"function": name, "rows": n, "seed": seed, "method": method, "seconds": round(seconds, 3)}
    record["log_loss"] = float(-(truth * np.log(floor)).sum(1).mean())
    record["least_log_loss"] = float(-(truth * np.log(np.clip(truth, 1e-300, 1))).sum(1).mean())
    record["brier"] = float(((mean - truth) ** 2).sum(1).mean() + (truth * (1 - truth)).sum(1).mean())
    if bounds is not None:
        record["coverage"] = float(np.mean((bounds[..., 0] <= truth) & (truth <= bounds[..., 1])))
        record["width"] = float((bounds[..., 1] - bounds[..., 0]).mean())
        record["oracle"] = oracle_width(mean, truth)
    return record


def oracle_width(mean: Array, truth: Array) -> float:
    """Of intervals that know how far off log-odds are on average: ± 1.96 of their root mean square error, mapped."""
    f, eta = (np.log(p / (1 - p)) for p in (np.clip(mean, 1e-9, 1 - 1e-9), np.clip(truth, 1e-9, 1 - 1e-9)))
    error = ORACLE * np.sqrt(((f - eta) ** 2).mean(axis=0))
    return float((expit(f + error) - expit(f - error)).mean())


def records(path: Path = OUT) -> list[Record]:
    """What was measured so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--rows", nargs="+", type=int, default=[128, 512])
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(arguments)
    done = {(one["function"], one["rows"], one["seed"], one["method"]) for one in records(asked.out)}
    for seed in range(asked.repetitions):
        for n in asked.rows:
            for name in asked.functions:
                for method in asked.methods:
                    if (name, n, seed, method) in done:
                        continue
                    record = measured(name, n, seed, method)
                    with asked.out.open("a") as file:
                        file.write(json.dumps(record) + "\n")
                    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
