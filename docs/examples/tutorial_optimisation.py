"""Where is the function largest? Thirty noisy measurements, each where the interval reaches highest, against other rules."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from unseed import MLP, PNCRegressor

SEEDS, FIRST, LAST = range(6), 6, 36
RULES = ("random", "prediction", "upper bound")


def valley(X):
    """Branin's function on the unit square, upside down and in units of its standard deviation; 0 at its three maxima."""
    a, b = 15 * X[:, 0] - 5, 15 * X[:, 1]
    bowl = (b - 5.1 * a**2 / (4 * np.pi**2) + 5 * a / np.pi - 6) ** 2
    return (0.397887 - bowl - 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) - 10) / 51


def two_hills(X):
    """A high hill that is narrow beside a lower one that is broad; 0 at its maximum, -0.3 on the lower hill."""
    high = np.exp(-40 * ((X - [0.75, 0.7]) ** 2).sum(axis=1))
    return np.maximum(high, 0.7 * np.exp(-6 * ((X - [0.2, 0.3]) ** 2).sum(axis=1))) - 1


def choose(rule, X, y, candidates):
    """The candidate to measure next: any, by the prediction, or by the upper end of its 95 % confidence interval."""
    if rule == "random":
        return candidates[0]
    network = MLP(activation="erf", weight_std=3.0, bias_scale=1.0)
    reg = PNCRegressor(network=network, regularization=1e-3, random_state=0).fit(X, y)
    mean, intervals = reg.predict_interval(candidates, confidence_level=0.95)
    return candidates[np.argmax(mean if rule == "prediction" else intervals[:, 1, 0])]


def search(function, rule, seed, noise=0.02):
    """How far the best point so far is below the maximum, after every measurement."""
    rng = np.random.default_rng(seed)  # the same first points, candidates and noise for every rule
    X = rng.uniform(0, 1, (FIRST, 2))
    y = function(X) + noise * rng.standard_normal(FIRST)
    for _ in range(LAST - FIRST):
        x = choose(rule, X, y, rng.uniform(0, 1, (300, 2)))
        X, y = np.vstack([X, x]), np.append(y, function(x[None]) + noise * rng.standard_normal())
    return -np.maximum.accumulate(function(X))


print("| function | next measurement by | below the maximum after 16 | after 36 |")
print("|---|---|---|---|")
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, function in zip(axes, (valley, two_hills), strict=True):
    name = function.__name__.replace("_", " ")
    for rule, colour in zip(RULES, ("0.6", "#d55e00", "#0b3c5d"), strict=True):
        gaps = np.array([search(function, rule, seed) for seed in SEEDS])
        print(f"| {name} | {rule} | {gaps[:, 15].mean():.3f} | {gaps[:, -1].mean():.3f} |")
        ax.plot(np.arange(1, LAST + 1), gaps.mean(axis=0), color=colour, lw=2.5, label=rule)
        ax.plot(np.arange(1, LAST + 1), gaps.T, color=colour, lw=0.6, alpha=0.4)
    ax.set(xlabel="measurements", ylim=(0, 0.6))
    ax.set_title(name, loc="left")
axes[0].set_ylabel("best so far, below the maximum")
axes[1].legend(frameon=False, title="next measurement by", loc="upper right")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "tutorial_optimisation.png", dpi=80)
