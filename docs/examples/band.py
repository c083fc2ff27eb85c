"""A band over one feature: what other seeds would have drawn, what unseed draws, and how sure it is."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from unseed import MLP, PNCRegressor
from unseed.plots import IntervalDisplay


def truth(x):
    """The function behind the data."""
    return np.sin(3 * x) + 0.5 * x


rng = np.random.default_rng(1)
x = rng.uniform(-2, 2, 30)
y = truth(x) + 0.15 * rng.standard_normal(len(x))
grid = np.linspace(-2.1, 2.1, 300)

reg = PNCRegressor(network=MLP(activation="erf", weight_std=1.5, bias_scale=1.5), random_state=2).fit(x[:, None], y)
networks = reg.sample_networks(grid[:, None], 20, random_state=1)

figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
axes[0].plot(grid, networks.T, color="0.6", lw=0.8)
axes[0].set_title("the same data, 20 seeds", loc="left")
axes[0].set_ylabel("y")
IntervalDisplay.from_estimator(reg, grid[:, None], position=grid, ax=axes[1])
axes[1].plot(grid, truth(grid), "--", color="black", lw=1, label="truth")
axes[1].set_title("unseed: no seed left, and a 95 % confidence band", loc="left")
for ax in axes:
    ax.plot(x, y, "x", color="#d55e00", ms=4, label="data")
    ax.set_xlabel("x")
    ax.spines[["top", "right"]].set_visible(False)
axes[1].legend(frameon=False, loc="upper left")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "band.png", dpi=130)
