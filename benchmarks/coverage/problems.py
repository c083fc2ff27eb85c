"""The problems of the scoreboard: functions, laws of the inputs, laws of the noise, and the cells made of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

Array = np.ndarray
Rng = np.random.Generator


# Functions. Those of the literature live on their own domain; the others on features of mean 0 and variance 1.
def synthetic_1(X: Array) -> Array:
    return np.sin(X).sum(1)


def synthetic_2(X: Array) -> Array:
    return (X * np.sin(X)).sum(1)


def friedman_1(X: Array) -> Array:
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def _friedman_domain(X: Array) -> Array:
    return X[:, :4] * [100, 520 * np.pi, 1, 10] + [0, 40 * np.pi, 0, 1]


def friedman_2(X: Array) -> Array:
    a, b, c, d = _friedman_domain(X).T
    return np.sqrt(a**2 + (b * c - 1 / (b * d)) ** 2)


def friedman_3(X: Array) -> Array:
    a, b, c, d = _friedman_domain(X).T
    return np.arctan((b * c - 1 / (b * d)) / np.maximum(a, 1e-9))


def additive(Z: Array) -> Array:
    j = np.arange(Z.shape[1])
    return (np.sin((1 + j % 3) * Z + j) / np.sqrt(1 + j)).sum(1)


def ridge(Z: Array) -> Array:
    direction = 1 / np.sqrt(Z.shape[1])
    return np.tanh(2 * Z.sum(1) * direction)


def product(Z: Array) -> Array:
    return np.prod(np.cos(1.5 * Z[:, :4]), axis=1)


def bump(Z: Array) -> Array:
    return np.exp(-2 * ((Z[:, :3] - 0.5) ** 2).sum(1))


def step(Z: Array) -> Array:
    return np.tanh(8 * (Z[:, 0] - 0.3)) + 0.5 * Z[:, -1]


def chirp(Z: Array) -> Array:
    return np.sin(3 * np.exp(Z[:, 0] / 1.5)) + 0.3 * Z[:, 1:].sum(1)


def kinks(Z: Array) -> Array:
    return np.abs(Z[:, 0]) + np.maximum(Z[:, -1], 0.5 * Z[:, Z.shape[1] // 2])


def wave(Z: Array) -> Array:
    return np.sin(5 * Z[:, 0]) + 0.5 * np.cos(2 * Z[:, -1])


def runge(Z: Array) -> Array:
    return 1 / (1 + 4 * (Z[:, :2] ** 2).sum(1))


def quadratic(Z: Array) -> Array:
    return Z[:, 0] * Z[:, 1] + 0.5 * Z[:, 2] ** 2 - Z[:, -1]


def linear(Z: Array) -> Array:
    return Z @ np.linspace(1, -0.5, Z.shape[1])


def dose(Z: Array) -> Array:
    return 3 / (1 + np.exp(-2 * Z[:, 0])) * np.exp(-0.3 * Z[:, 1] ** 2) + 0.2 * Z[:, 2]


def sparse_mixture(Z: Array) -> Array:
    return np.sin(2 * Z[:, 0]) * Z[:, 1] + np.log1p(Z[:, 2] ** 2) + 0.5 * np.tanh(3 * Z[:, 3])


def staircase(Z: Array) -> Array:
    return np.floor(1.5 * Z[:, 0]) + 0.3 * Z[:, -1]


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    function.__name__: function
    for function in (
        synthetic_1, synthetic_2, friedman_1, friedman_2, friedman_3, additive, ridge, product, bump, step, chirp, kinks, wave,
        runge, quadratic, linear, dose, sparse_mixture, staircase,
    )
}  # fmt: skip
ON_UNIT_CUBE = ("friedman_1", "friedman_2", "friedman_3")
PAPER = ("synthetic_1", "synthetic_2")


def draw_inputs(law: str, n: int, d: int, rng: Rng) -> Array:
    """Features of mean 0 and variance 1: normal, uniform, skewed or correlated."""
    if law == "normal":
        return rng.standard_normal((n, d))
    if law == "uniform":
        return rng.uniform(-np.sqrt(3), np.sqrt(3), (n, d))
    if law == "skewed":
        return (rng.gamma(2.0, size=(n, d)) - 2) / np.sqrt(2)
    if law == "correlated":
        Z = rng.standard_normal((n, d))
        for j in range(1, d):
            Z[:, j] = 0.7 * Z[:, j - 1] + np.sqrt(1 - 0.49) * Z[:, j]
        return Z
    raise ValueError(f"law={law!r}")


@dataclass(frozen=True)
class Cell:
    """One problem: a function, its inputs, its noise and a number of rows."""

    function: str
    d: int
    n: int
    noise: float  # standard deviation, as a share of that of the function (absolute for the paper's two)
    inputs: str = "uniform"
    noise_law: str = "normal"

    @property
    def name(self) -> str:
        return f"{self.function} d={self.d} n={self.n} noise={self.noise:g} {self.inputs} {self.noise_law}"

    @property
    def seed(self) -> int:
        return zlib.crc32(self.name.encode())

    def draw(self, n: int, rng: Rng) -> tuple[Array, Array]:
        """Rows and the truth at them."""
        if self.function in PAPER:
            X = rng.uniform(0, 0.2, (n, self.d))
        else:
            X = draw_inputs(self.inputs, n, self.d, rng)
            if self.function in ON_UNIT_CUBE:  # the same law, moved to the cube where the function is defined
                X = _to_cube(X, self.inputs)
        return X, self.truth(X)

    def truth(self, X: Array) -> Array:
        """The function itself."""
        return FUNCTIONS[self.function](X)

    @property
    def noise_sd(self) -> float:
        if self.function in PAPER:
            return self.noise
        return self.noise * float(self.draw(20_000, np.random.default_rng(0))[1].std())

    def sample(self, repetition: int) -> tuple[Array, Array]:
        """Training rows and noisy labels of a repetition."""
        rng = np.random.default_rng([self.seed, repetition])
        X, truth = self.draw(self.n, rng)
        return X, truth + self.noise_sd * self._unit_noise(X, rng)

    def test(self, n_points: int = 200) -> tuple[Array, Array]:
        """Points of the domain, the same for every repetition, and the truth there."""
        return self.draw(n_points, np.random.default_rng([self.seed, 10**9]))

    def _unit_noise(self, X: Array, rng: Rng) -> Array:
        if self.noise_law == "normal":
            return rng.standard_normal(len(X))
        if self.noise_law == "heavy":
            return rng.standard_t(3, len(X)) / np.sqrt(3)
        if self.noise_law == "heteroscedastic":
            rank = stats.rankdata(X[:, 0]) / len(X)
            return rng.standard_normal(len(X)) * (0.3 + 1.4 * rank) / np.sqrt(np.mean((0.3 + 1.4 * rank) ** 2))
        raise ValueError(f"noise_law={self.noise_law!r}")


def _to_cube(Z: Array, law: str) -> Array:
    if law == "uniform":
        return Z / (2 * np.sqrt(3)) + 0.5
    if law == "skewed":
        return stats.gamma.cdf(np.sqrt(2) * Z + 2, 2.0) ** 2
    return stats.norm.cdf(Z)


PAPER_CELLS = [Cell(f, d, n, 0.001) for f in PAPER for d in (2, 4, 8, 16) for n in (128, 256, 512, 1024)]

CELLS = [
    Cell("friedman_1", 10, 64, 0.1),
    Cell("friedman_1", 10, 256, 0.1),
    Cell("friedman_1", 10, 256, 0.5),
    Cell("friedman_1", 10, 1024, 0.02),
    Cell("friedman_1", 20, 256, 0.2, "correlated"),
    Cell("friedman_1", 5, 512, 1.0, "uniform", "heavy"),
    Cell("friedman_1", 20, 1024, 0.5, "skewed", "heteroscedastic"),
    Cell("friedman_2", 4, 128, 0.1),
    Cell("friedman_2", 4, 512, 0.3, "skewed"),
    Cell("friedman_2", 4, 1024, 0.02, "correlated"),
    Cell("friedman_3", 4, 128, 0.2),
    Cell("friedman_3", 4, 512, 0.05),
    Cell("friedman_3", 4, 1024, 0.3, "uniform", "heteroscedastic"),
    Cell("additive", 1, 64, 0.2),
    Cell("additive", 2, 128, 0.1, "normal"),
    Cell("additive", 8, 256, 0.1),
    Cell("additive", 8, 1024, 0.5, "normal"),
    Cell("additive", 20, 512, 0.1),
    Cell("additive", 20, 1024, 0.3, "correlated", "heavy"),
    Cell("ridge", 1, 64, 0.5, "normal"),
    Cell("ridge", 5, 256, 0.05, "normal"),
    Cell("ridge", 20, 256, 0.2, "normal"),
    Cell("ridge", 20, 1024, 1.0, "skewed"),
    Cell("ridge", 10, 128, 0.1, "correlated"),
    Cell("product", 2, 256, 0.05, "normal"),
    Cell("product", 4, 512, 0.1, "normal"),
    Cell("product", 4, 1024, 0.5, "uniform"),
    Cell("product", 8, 1024, 0.05, "normal"),
    Cell("product", 3, 128, 0.2, "uniform", "heavy"),
    Cell("bump", 1, 64, 0.05, "normal"),
    Cell("bump", 2, 256, 0.2),
    Cell("bump", 3, 512, 0.1, "normal"),
    Cell("bump", 8, 1024, 0.3, "normal"),
    Cell("step", 1, 64, 0.1, "normal"),
    Cell("step", 2, 256, 0.02),
    Cell("step", 5, 512, 0.3, "skewed"),
    Cell("step", 10, 1024, 0.1, "normal"),
    Cell("chirp", 1, 128, 0.1),
    Cell("chirp", 1, 512, 0.5),
    Cell("chirp", 3, 512, 0.1, "normal"),
    Cell("chirp", 5, 1024, 0.05),
    Cell("kinks", 1, 64, 0.1, "normal"),
    Cell("kinks", 3, 256, 0.02),
    Cell("kinks", 8, 512, 0.3, "correlated"),
    Cell("kinks", 20, 1024, 0.1),
    Cell("wave", 1, 128, 0.3),
    Cell("wave", 2, 256, 0.1),
    Cell("wave", 5, 512, 0.1, "normal"),
    Cell("wave", 10, 1024, 0.5),
    Cell("runge", 1, 128, 0.01),
    Cell("runge", 2, 256, 0.1, "normal"),
    Cell("runge", 6, 1024, 0.1, "normal", "heteroscedastic"),
    Cell("quadratic", 4, 128, 0.01, "normal"),
    Cell("quadratic", 8, 256, 0.3, "skewed"),
    Cell("quadratic", 16, 512, 1.0, "normal"),
    Cell("linear", 2, 64, 0.3),
    Cell("linear", 10, 128, 1.0, "normal"),
    Cell("linear", 20, 256, 0.1, "correlated"),
    Cell("linear", 5, 1024, 0.5, "skewed", "heavy"),
    Cell("dose", 3, 64, 0.1, "normal"),
    Cell("dose", 3, 256, 0.5, "skewed"),
    Cell("dose", 12, 512, 0.2, "normal", "heteroscedastic"),
    Cell("sparse_mixture", 4, 256, 0.1, "normal"),
    Cell("sparse_mixture", 8, 1024, 0.2),
    Cell("sparse_mixture", 16, 512, 0.5, "normal"),
    Cell("staircase", 1, 128, 0.1),
    Cell("staircase", 2, 512, 0.1, "normal"),
    Cell("staircase", 4, 1024, 0.3),
    Cell("friedman_1", 10, 4096, 0.2),
    Cell("product", 4, 4096, 0.2, "normal"),
    Cell("additive", 8, 2048, 0.05, "skewed"),
    Cell("chirp", 2, 2048, 0.3),
]
