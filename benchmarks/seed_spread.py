"""The picture in the README: one network per seed, and PNC per seed, on the same data.

python benchmarks/seed_spread.py docs/images/seeds.png [--seeds 50]
"""

import argparse
import warnings

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from unseed import NetworkEngine
from width_limit import data, fitted, pnc_and_single

warnings.simplefilter("ignore")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    for ax, d in zip(axes, (2, 16), strict=True):
        X, y, X_new = data(d)
        engine = NetworkEngine(width=4096)
        runs = [pnc_and_single(fitted(X, y, engine, seed, options.device, 1e-4), X_new) for seed in range(options.seeds)]
        pnc, single = (np.array(values) for values in zip(*runs, strict=True))
        ratio = np.var(pnc, axis=0).mean() / np.var(single, axis=0).mean()
        print(f"d = {d}: variance over {options.seeds} seeds, PNC / single network = {ratio:.4f}")
        centre = pnc.mean(axis=0)
        order = np.argsort(single.std(axis=0))
        place = np.arange(len(order))
        for values, colour, name, shift in ((single, "#d55e00", "single network", -0.2), (pnc, "#0b3c5d", "PNC", 0.2)):
            spread = (values - centre)[:, order]
            ax.vlines(place + shift, spread.min(axis=0), spread.max(axis=0), color=colour, lw=2, label=name)
        ax.set_title(f"d = {d}: variance over seeds falls to {100 * ratio:.2g} %", loc="left")
        ax.set_xlabel("50 new points")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("prediction − mean, in sd of y")
    axes[0].legend(frameon=False, loc="upper left")
    figure.savefig(options.out, dpi=120)


if __name__ == "__main__":
    main()
