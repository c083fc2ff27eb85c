"""The paper's data: two synthetic functions with known truth, and real data sets with artificial noise on the labels.

Every data set follows from the setting's name and the number of the repetition, whatever runs it and in which order.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unseed.errors import InvalidInputError

Array = npt.NDArray[np.float64]

DIMENSIONS, SIZES = (2, 4, 8, 16), (128, 256, 512, 1024)
DATASETS = ("boston", "concrete", "energy")
DOMAIN_POINTS, TEST_POINTS, NOISE_SD = 200, 2048, 0.001
REAL_NOISE_SD, REAL_TESTS, TRAINING_SHARE = 0.1, 5, 0.8
_EDGE, _CENTRE = 0.2, 0.1

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "synthetic-1": lambda X: np.asarray(np.sin(X).sum(axis=1)),
    "synthetic-2": lambda X: np.asarray((X * np.sin(X)).sum(axis=1)),
}


@dataclass(frozen=True)
class Sample:
    """One data set: rows to learn from, and noisy test rows to be predicted."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


@dataclass(frozen=True)
class Places:
    """Where intervals are judged: the paper's own points first, then points all over the domain, with the truth there."""

    X: Array
    truth: Array
    n_own: int


class Setting(Protocol):
    """A way to draw data sets again and again."""

    @property
    def name(self) -> str:
        """Names the setting in records."""
        ...

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Keys of the printed rows that this setting fills, one for each of its own points."""
        ...

    @property
    def n(self) -> int:
        """Number of training rows."""
        ...

    def sample(self, repetition: int) -> Sample:
        """Data set of a repetition; negative numbers are pilots, on which nothing is judged."""
        ...

    def places(self) -> Places:
        """Same points in every repetition."""
        ...

    def population(self, n_rows: int) -> tuple[Array, Array]:
        """Noise-free rows that stand for infinitely many, n_rows of them at most."""
        ...


def seed_of(*words: object) -> int:
    """A seed from words, the same on every machine."""
    return zlib.crc32("|".join(map(str, words)).encode())


@dataclass(frozen=True)
class Synthetic:
    """X uniform on [0, 0.2]^d, Y = f(X) + noise of standard deviation 0.001, judged at x0 = (0.1, …, 0.1).

    Examples
    --------
    >>> setting = Synthetic("synthetic-1", d=2, n=128)
    >>> setting.name, setting.sample(0).X.shape, setting.places().truth[0].round(4).item()
    ('synthetic-1 d=2 n=128', (128, 2), 0.1997)
    """

    function: str
    d: int
    n: int

    @property
    def name(self) -> str:
        """Names the setting in records."""
        return f"{self.function} d={self.d} n={self.n}"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One printed row: d and n."""
        return [{"d": self.d, "n": self.n}]

    def sample(self, repetition: int) -> Sample:
        """New rows and new noise."""
        rng = np.random.default_rng(seed_of("data", self.name, repetition))
        X, X_test = (rng.uniform(0, _EDGE, (m, self.d)) for m in (self.n, TEST_POINTS))
        y, y_test = (self.truth(Z) + NOISE_SD * rng.standard_normal(len(Z)) for Z in (X, X_test))
        return Sample(X, y, X_test, y_test)

    def places(self) -> Places:
        """x0, then 200 random points of the domain."""
        rng = np.random.default_rng(seed_of("domain", self.function, self.d))
        X = np.vstack([np.full((1, self.d), _CENTRE), rng.uniform(0, _EDGE, (DOMAIN_POINTS, self.d))])
        return Places(X, self.truth(X), 1)

    def population(self, n_rows: int) -> tuple[Array, Array]:
        """A Sobol sequence: it fills the domain more evenly than random rows."""
        from scipy.stats import qmc

        sequence = qmc.Sobol(self.d, seed=seed_of("population", self.d))
        X = _EDGE * sequence.random_base2(int(np.log2(n_rows)))
        return X, self.truth(X)

    def truth(self, X: Array) -> Array:
        """The regression function."""
        return FUNCTIONS[self.function](X)


@dataclass(frozen=True)
class Simulated:
    """A real data set, standardised, whose labels are taken for the truth and get new Gaussian noise in every repetition.

    The paper does not print its noise, points and splits: here noise has standard deviation 0.1 (labels have 1), a split
    keeps 80 % of the rows for training, and the test points are the first five of the others.
    """

    dataset: str
    split: int

    @property
    def name(self) -> str:
        """Names the setting in records."""
        return f"{self.dataset} split={self.split}"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Five printed rows, one for each test point."""
        return [{"dataset": self.dataset, "test": test + 1} for test in range(REAL_TESTS)]

    @property
    def n(self) -> int:
        """Number of training rows."""
        return len(self._parts()[0])

    def sample(self, repetition: int) -> Sample:
        """The same rows with new noise."""
        train, test = self._parts()
        X, y = load(self.dataset)
        rng = np.random.default_rng(seed_of("data", self.name, repetition))
        noisy = y + REAL_NOISE_SD * rng.standard_normal(len(y))
        return Sample(X[train], noisy[train], X[test], noisy[test])

    def places(self) -> Places:
        """Five test points, then up to 200 other rows that were not trained on."""
        _, test = self._parts()
        X, y = load(self.dataset)
        chosen = test[: REAL_TESTS + DOMAIN_POINTS]
        return Places(X[chosen], y[chosen], REAL_TESTS)

    def population(self, n_rows: int) -> tuple[Array, Array]:
        """The training rows without noise: the noise is all that varies here."""
        train, _ = self._parts()
        X, y = load(self.dataset)
        return X[train], y[train]

    def _parts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        X, _ = load(self.dataset)
        order = np.random.default_rng(seed_of("split", self.name)).permutation(len(X))
        n_train = round(TRAINING_SHARE * len(X))
        return order[:n_train], order[n_train:]


@dataclass(frozen=True)
class Split(Simulated):
    """The same for errors: one printed row for each random split."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One printed row."""
        return [{"dataset": self.dataset, "test": self.split}]


_OPENML = {"boston": 531, "concrete": 4353, "energy": 1472}
_COLUMNS = {"boston": 13, "concrete": 8, "energy": 8}  # features; the target is the column after them


@cache
def load(dataset: str) -> tuple[Array, Array]:
    """Features and label, each with mean 0 and variance 1, from the folder UNSEED_DATA or from OpenML."""
    folder, n_features = os.environ.get("UNSEED_DATA"), _COLUMNS[dataset]
    values = _from_folder(Path(folder), dataset) if folder else _from_openml(dataset)
    X, y = values[:, :n_features], values[:, n_features]
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def _from_folder(folder: Path, dataset: str) -> Array:
    path = folder / f"{dataset}.csv"
    if not path.is_file():
        raise InvalidInputError(f"UNSEED_DATA={str(folder)!r} has no file {dataset}.csv; put it there or unset UNSEED_DATA")
    try:
        values = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except ValueError as error:
        raise InvalidInputError(f"{path} is not a table of numbers with one line of names: {error}") from error
    if values.shape[1] <= _COLUMNS[dataset]:
        raise InvalidInputError(f"{path} has {values.shape[1]} columns; {_COLUMNS[dataset]} features and a target are needed")
    return values


def _from_openml(dataset: str) -> Array:
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # every failed attempt warns, and the last one is an error anyway
            # without a target column, all columns come in the order of the file: features first
            bunch = fetch_openml(data_id=_OPENML[dataset], target_column=None, as_frame=False, parser="liac-arff")
    except Exception as error:  # whatever the network, a proxy or the server may raise
        raise InvalidInputError(
            f"the data set {dataset!r} could not be fetched from OpenML ({type(error).__name__}); set UNSEED_DATA to a "
            f"folder that has {dataset}.csv, features first, then the target"
        ) from error
    return np.asarray(bunch.data, dtype=np.float64)


def settings_of(table: str, sizes: tuple[int, ...] = SIZES, dimensions: tuple[int, ...] = DIMENSIONS) -> list[Setting]:
    """All settings behind a table, in the order of its rows."""
    if table in ("table-1", "table-2", "table-3", "table-4"):
        function = "synthetic-1" if table in ("table-1", "table-2") else "synthetic-2"
        return [Synthetic(function, d, n) for d in dimensions for n in sizes]
    if table == "table-5":
        return [Simulated(dataset, 1) for dataset in DATASETS]
    if table == "table-6":
        return [Split(dataset, split + 1) for dataset in DATASETS for split in range(REAL_TESTS)]
    return []
