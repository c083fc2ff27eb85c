"""Where to measure next? Labels are spent where the interval is widest, and as many at random, for comparison."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from unseed import MLP, PNCRegressor

SEEDS, FIRST, LAST, NOISE = range(8), 10, 40, 0.1
AXIS = np.linspace(-1, 1, 21)
GRID = np.stack(np.meshgrid(AXIS, AXIS), axis=-1).reshape(-1, 2)  # where the function is wanted


def truth(X):
    """The function behind the data."""
    return np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1])


def crowded_pool(rng):
    """Candidates, nine tenths of them in one corner."""
    return np.concatenate([rng.normal(-0.6, 0.15, (360, 2)), rng.uniform(-1, 1, (40, 2))]).clip(-1, 1)


def even_pool(rng):
    """Candidates everywhere."""
    return rng.uniform(-1, 1, (400, 2))


def fit(X, y):
    """Network and λ are given, so that a fit takes milliseconds."""
    network = MLP(activation="erf", weight_std=2.0, bias_scale=1.0)
    return PNCRegressor(network=network, regularization=0.003, random_state=0).fit(X, y)


def by_width(reg, pool):
    """How wide the 95 % confidence interval is at each candidate."""
    return np.ptp(reg.predict_interval(pool, confidence_level=0.95)[1][..., 0], axis=1)


def learn(pool, y, rule, rng):
    """Buy labels until there are enough; returns the rows that were labelled and the error of the last fit."""
    known = list(rng.permutation(len(pool))[:FIRST])
    while len(known) < LAST:
        left = np.setdiff1d(np.arange(len(pool)), known)
        worth = by_width(fit(pool[known], y[known]), pool[left]) if rule == "widest" else rng.random(len(left))
        known.append(left[np.argmax(worth)])
    reg = fit(pool[known], y[known])
    return pool[known], np.sqrt(np.mean((reg.predict(GRID) - truth(GRID)) ** 2))


def trial(make_pool, seed, rule):
    """One pool, its labels, and what a rule makes of them; all rules see the same pool and start from the same rows."""
    rng = np.random.default_rng(seed)
    pool = make_pool(rng)
    y = truth(pool) + NOISE * rng.standard_normal(len(pool))
    return learn(pool, y, rule, rng)


print("| pool | labels at random, RMSE | labels where the interval is widest, RMSE | widest is better in |")
print("|---|---|---|---|")
for name, make_pool in (("crowded", crowded_pool), ("even", even_pool)):
    at_random, widest = (np.array([trial(make_pool, seed, rule)[1] for seed in SEEDS]) for rule in ("random", "widest"))
    better = (widest < at_random).sum()
    print(f"| {name} | {at_random.mean():.2f} | {widest.mean():.2f} | {better} of {len(SEEDS)} data sets |")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, rule in zip(axes, ("random", "widest"), strict=True):
    rows, error = trial(crowded_pool, 0, rule)
    ax.contourf(AXIS, AXIS, truth(GRID).reshape(21, 21), levels=12, cmap="Greys", alpha=0.5)
    ax.plot(*rows[:FIRST].T, "x", color="black", label="first ten labels")
    ax.plot(*rows[FIRST:].T, "o", color="#d55e00", ms=4, label="thirty that were chosen")
    ax.set_title(f"{rule}: error {error:.2f}", loc="left")
axes[0].legend(loc="upper right")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "tutorial_active_learning.png", dpi=80)
