"""Functions with a known truth for `size.py`: those that defaults were tuned on, and those that were held back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import pi, sqrt
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

Array = NDArray[np.float64]
Map = Callable[[Array], Array]

NOISE = 0.3  # of the standard deviation of f, unless said
NEAR_A_JUMP = 0.02  # of the range of a feature
CORRELATION = 0.7  # of neighbouring features, where they are correlated

WING = np.array([[150, 220, 6, -10, 16, 0.5, 0.08, 2.5, 1700, 0.025], [200, 300, 10, 10, 45, 1, 0.18, 6, 2500, 0.08]])
BOREHOLE = np.array(
    [[0.05, 100, 63070, 990, 63.1, 700, 1120, 9855], [0.15, 50000, 115600, 1110, 116, 820, 1680, 12045]], dtype=float
)
CIRCUIT = np.array([[50, 25, 0.5, 1.2, 0.25, 50], [150, 70, 3, 2.5, 1.2, 300]])
PISTON = np.array(
    [[30, 0.005, 0.002, 1000, 90000, 290, 340], [60, 0.020, 0.010, 5000, 110000, 296, 360]], dtype=float
)  # mass, surface, volume, spring, pressure, ambient and gas temperature
HARTMANN_WEIGHTS = np.array([1, 1.2, 3, 3.2])
HARTMANN_SCALES = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def spread(u: Array, ranges: Array) -> Array:
    """Columns in the given ranges, from the unit cube; one row for each feature."""
    low, high = ranges
    return (low + (high - low) * u).T


def centred(u: Array) -> Array:
    """Columns of mean zero and variance one; one row for each feature."""
    return (u.T - 0.5) * sqrt(12)


def wing_weight(u: Array) -> Array:
    area, fuel, aspect, sweep, pressure, taper, thickness, load, weight, paint = spread(u, WING)
    cosine = np.cos(sweep * pi / 180)
    shape = (aspect / cosine**2) ** 0.6 * pressure**0.006 * taper**0.04 * (100 * thickness / cosine) ** -0.3
    return 0.036 * area**0.758 * fuel**0.0035 * shape * (load * weight) ** 0.49 + area * paint


def ishigami(u: Array) -> Array:
    x1, x2, x3 = (2 * u.T - 1) * pi
    return np.sin(x1) + 7 * np.sin(x2) ** 2 + 0.1 * x3**4 * np.sin(x1)


def robot_arm(u: Array) -> Array:
    angles, lengths = np.cumsum(2 * pi * u[:, :4], axis=1), u[:, 4:]
    return np.hypot((lengths * np.cos(angles)).sum(1), (lengths * np.sin(angles)).sum(1))


def hartmann(u: Array) -> Array:
    bumps = zip(HARTMANN_WEIGHTS, HARTMANN_SCALES, HARTMANN_CENTRES, strict=True)
    return -sum(weight * np.exp(-((u - centre) ** 2) @ scale) for weight, scale, centre in bumps)


def friedman(u: Array) -> Array:
    return 10 * np.sin(pi * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - 0.5) ** 2 + 10 * u[:, 3] + 5 * u[:, 4]


def dette_pepelyshev(u: Array) -> Array:
    x1, x2, x3 = u.T
    return 4 * (x1 - 2 + 8 * x2 - 8 * x2**2) ** 2 + (3 - 4 * x2) ** 2 + 16 * np.sqrt(x3 + 1) * (2 * x3 - 1) ** 2


def tanh_ridge(u: Array) -> Array:
    return np.tanh(2 * centred(u).sum(0) / sqrt(u.shape[1]))


def logistic(u: Array) -> Array:
    z = centred(u)
    return expit(3 * z.sum(0) / sqrt(len(z)) + z[0] * z[1])


def kink(u: Array) -> Array:
    z = centred(u)
    return np.abs(z[0]) + np.maximum(z[-1], 0.5 * z[2])


def levels(u: Array) -> Array:
    return np.floor(3 * u[:, 0]) + 0.5 * (u[:, 1] > 0.6) + u[:, 2]


def away_from_levels(u: Array) -> NDArray[np.bool_]:
    """Points that are not beside a jump of `levels`."""
    distances = [np.abs(u[:, [0]] - np.array([1 / 3, 2 / 3])).min(1), np.abs(u[:, 1] - 0.6)]
    return np.minimum(*distances) > NEAR_A_JUMP


def product_of_cosines(u: Array) -> Array:
    return np.cos(1.5 * centred(u)[:4]).prod(0)


def interactions(u: Array) -> Array:
    return np.sin(6 * u[:, 0] * u[:, 1]) + u[:, 2] * u[:, 3] * np.cos(8 * u[:, 4]) + 0.3 * (u[:, 5:10] ** 2).sum(1)


def borehole(u: Array) -> Array:
    well, influence, above, head, below, other_head, length, conductivity = spread(u, BOREHOLE)
    ratio = np.log(influence / well)
    leak = 2 * length * above / (ratio * well**2 * conductivity)
    return 2 * pi * above * (head - other_head) / (ratio * (1 + leak + above / below))


def circuit(u: Array) -> Array:
    b1, b2, f, c1, c2, gain = spread(u, CIRCUIT)
    base, load = 12 * b2 / (b1 + b2), gain * (c2 + 9)
    return ((base + 0.74) * load + 11.35 * f + 0.74 * f * load / c1) / (load + f)


def piston(u: Array) -> Array:
    mass, surface, volume, spring, pressure, ambient, gas = spread(u, PISTON)
    force = pressure * surface + 19.62 * mass - spring * volume / surface
    reached = surface / (2 * spring) * (np.sqrt(force**2 + 4 * spring * pressure * volume / gas * ambient) - force)
    return 2 * pi * np.sqrt(mass / (spring + surface**2 * pressure * volume / gas * ambient / reached**2))


def morokoff_caflisch(u: Array) -> Array:
    dimension = u.shape[1]
    return (1 + 1 / dimension) ** dimension * (u ** (1 / dimension)).prod(1)


def gramacy_lee(u: Array) -> Array:
    x = 0.5 + 2 * u[:, 0]
    return np.sin(10 * pi * x) / (2 * x) + (x - 1) ** 4


def franke(u: Array) -> Array:
    x, y = 9 * u.T
    return (
        0.75 * np.exp(-((x - 2) ** 2 + (y - 2) ** 2) / 4)
        + 0.75 * np.exp(-((x + 1) ** 2) / 49 - (y + 1) / 10)
        + 0.5 * np.exp(-((x - 7) ** 2 + (y - 3) ** 2) / 4)
        - 0.2 * np.exp(-((x - 4) ** 2) - (y - 7) ** 2)
    )


def g_function(u: Array) -> Array:
    importance = np.array([0, 1, 4.5, 9, 99, 99, 99, 99])
    return ((np.abs(4 * u - 2) + importance) / (1 + importance)).prod(1)


def currin(u: Array) -> Array:
    x, y = u.T
    fraction = (2300 * x**3 + 1900 * x**2 + 2092 * x + 60) / (100 * x**3 + 500 * x**2 + 4 * x + 20)
    return -np.expm1(-1 / (2 * np.maximum(y, 1e-12))) * fraction


def welch(u: Array) -> Array:
    x = u.T - 0.5
    curves = 5 * x[11] / (1 + x[0]) + 5 * (x[3] - x[19]) ** 2 + 40 * x[18] ** 3 - 5 * x[18]
    weights = {1: 0.05, 2: 0.08, 5: -0.03, 6: 0.03, 8: -0.09, 9: -0.01, 10: -0.07, 13: -0.04, 14: 0.06}
    weights |= {16: -0.01, 17: -0.03}
    return curves + x[4] + 0.25 * x[12] ** 2 + sum(weight * x[place] for place, weight in weights.items())


def loeppky(u: Array) -> Array:
    linear = u[:, :7] @ np.array([6, 4, 5.5, 1, 0.5, 0.2, 0.1])
    return linear + 3 * u[:, 0] * u[:, 1] + 2.2 * u[:, 0] * u[:, 2] + 1.4 * u[:, 1] * u[:, 2]


def independent(generator: np.random.Generator, rows: int, dimension: int) -> Array:
    return generator.random((rows, dimension))


def correlated(generator: np.random.Generator, rows: int, dimension: int) -> Array:
    """Uniform columns, each of which hangs together with the one before."""
    z = generator.standard_normal((rows, dimension))
    for column in range(1, dimension):
        z[:, column] = CORRELATION * z[:, column - 1] + sqrt(1 - CORRELATION**2) * z[:, column]
    return ndtr(z)


def normal(generator: np.random.Generator, u: Array) -> Array:
    return generator.standard_normal(len(u))


def growing(generator: np.random.Generator, u: Array) -> Array:
    """Normal, five times as wide at one end of the first feature as at the other; 1 in the middle."""
    return generator.standard_normal(len(u)) * (1 + 4 * u[:, 0]) / 3


def heavy_tailed(generator: np.random.Generator, u: Array) -> Array:
    """Student's t with three degrees of freedom, of variance one."""
    return generator.standard_t(3, len(u)) / sqrt(3)


@dataclass(frozen=True)
class Data:
    """Rows to learn from, and the truth at new points."""

    X: Array  # (n, d)
    y: Array
    X_new: Array
    truth: Array
    sd: float  # of f, over the law of the features


@dataclass(frozen=True)
class Problem:
    """A function, the law of its features, and the law of the noise in units of `NOISE` times the sd of f."""

    name: str
    function: Map
    dimension: int
    draw: Callable[[np.random.Generator, int, int], Array] = independent
    noise: Callable[[np.random.Generator, Array], Array] = normal
    is_tuned_on: bool = False
    away: Callable[[Array], NDArray[np.bool_]] | None = None  # from jumps, where there are any
    remark: str = field(default="", kw_only=True)

    @property
    def is_smooth(self) -> bool:
        return self.remark not in ("kinks", "jumps")

    @cached_property
    def sd(self) -> float:
        return float(self.function(self.draw(np.random.default_rng(0), 100_000, self.dimension)).std())

    def data(self, rows: int, points: int, seed: int = 0) -> Data:
        """The same data for every method."""
        generator = np.random.default_rng([seed, rows, crc32(self.name.encode())])
        X, X_new = (self.draw(generator, n, self.dimension) for n in (rows, points))
        y = self.function(X) + NOISE * self.sd * self.noise(generator, X)
        return Data(X, y, X_new, self.function(X_new), self.sd)


TUNED_ON = (
    Problem("wing-weight", wing_weight, 10, is_tuned_on=True),
    Problem("ishigami", ishigami, 3, is_tuned_on=True),
    Problem("robot-arm", robot_arm, 8, is_tuned_on=True),
    Problem("hartmann", hartmann, 6, is_tuned_on=True),
    Problem("friedman", friedman, 10, is_tuned_on=True),
    Problem("dette-pepelyshev", dette_pepelyshev, 3, is_tuned_on=True),
    Problem("tanh-ridge", tanh_ridge, 8, is_tuned_on=True),
    Problem("logistic", logistic, 12, is_tuned_on=True),
    Problem("kink", kink, 5, is_tuned_on=True, remark="kinks"),
    Problem("levels", levels, 4, is_tuned_on=True, away=away_from_levels, remark="jumps"),
    Problem("product-of-cosines", product_of_cosines, 6, is_tuned_on=True),
    Problem("interactions", interactions, 20, is_tuned_on=True),
)
HELD_BACK = (
    Problem("borehole", borehole, 8),
    Problem("circuit", circuit, 6),
    Problem("piston", piston, 7),
    Problem("morokoff-caflisch", morokoff_caflisch, 10),
    Problem("gramacy-lee", gramacy_lee, 1),
    Problem("franke", franke, 2),
    Problem("g-function", g_function, 8, remark="kinks"),
    Problem("currin", currin, 2, noise=growing, remark="heteroscedastic"),
    Problem("welch", welch, 20, noise=heavy_tailed, remark="t₃ noise"),
    Problem("loeppky", loeppky, 10, draw=correlated, remark="correlated features"),
)
PROBLEMS = {problem.name: problem for problem in (*TUNED_ON, *HELD_BACK)}
