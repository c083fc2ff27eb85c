"""Which interval do I want? A hundred data sets from a known function say what each interval holds and what it costs."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from unseed import MLP, PNCRegressor

METHODS = ["truth", "sectioning", "half_sampling", "cheap_bootstrap", "batching", "infinitesimal_jackknife"]
DATA_SETS, ROWS, NOISE, LEVEL = 100, 64, 0.25, 0.95
GRID = np.linspace(-1.9, 1.9, 50)
DARK, BLUE, PALE, ORANGE = "#0b3c5d", "#56a3d9", "#d5e6f3", "#d55e00"


def truth(x):
    """The function behind the data."""
    return np.sin(3 * x) + 0.5 * x


def fit(x, y, method, seed=0):
    """Network and λ are given, so that differences are those of the intervals."""
    network = MLP(activation="erf", weight_std=1.5, bias_scale=1.5)
    return PNCRegressor(network=network, regularization=1e-3, interval=method, random_state=seed).fit(x[:, None], y)


def draw(seed):
    """Rows of one data set, and one new observation at every point of the grid."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, ROWS)
    return x, truth(x) + NOISE * rng.standard_normal(ROWS), truth(GRID) + NOISE * rng.standard_normal(len(GRID))


def inside(bounds, values):
    """Which values the intervals hold."""
    return (bounds[:, 0] <= values) & (values <= bounds[:, 1])


def trial(method, seed, limit):
    """Shares held and widths, for one method on one data set."""
    x, y, new = draw(seed)
    prediction = fit(x, y, method, seed).get_prediction(GRID[:, None])
    point, band, observation = prediction.conf_int(LEVEL), prediction.simultaneous(LEVEL), prediction.pred_int(LEVEL)
    return {
        "f": inside(point, truth(GRID)).mean(),
        "h*": inside(point, limit).mean(),
        "f everywhere": inside(point, truth(GRID)).all(),
        "y": inside(point, new).mean(),
        "f everywhere, band": inside(band, truth(GRID)).all(),
        "y, prediction": inside(observation, new).mean(),
        "width": np.ptp(point, axis=1).mean(),
        "width, band": np.ptp(band, axis=1).mean(),
        "width, prediction": np.ptp(observation, axis=1).mean(),
    }


def averages(trials):
    """Over all data sets."""
    return {name: np.mean([one[name] for one in trials]) for name in trials[0]}


def draw_intervals(ax, prediction, x, y):
    """Confidence inside prediction intervals."""
    ax.fill_between(GRID, *prediction.pred_int(LEVEL).T, color=PALE, lw=0, label="for one new y: pred_int")
    ax.fill_between(GRID, *prediction.conf_int(LEVEL).T, color=BLUE, lw=0, label="for f at one x: conf_int")
    ax.plot(x, y, "x", color=ORANGE, ms=4)
    ax.set_title("the function, or an observation?", loc="left")


def draw_bands(ax, prediction):
    """Pointwise inside simultaneous."""
    for side in prediction.simultaneous(LEVEL).T:
        ax.plot(GRID, side, "--", color=ORANGE, lw=1.2)
    ax.plot([], [], "--", color=ORANGE, lw=1.2, label="f at all x at once: simultaneous")
    ax.fill_between(GRID, *prediction.conf_int(LEVEL).T, color=BLUE, lw=0, label="f at one x: conf_int")
    ax.set_title("one point, or all of them?", loc="left")


def draw_methods(ax, results):
    """What each method holds, over what it costs in width."""
    ax.axhline(LEVEL, color="0.5", lw=1, ls="--")
    for method, result in results.items():
        ax.plot(result["width"], result["f"], "o", color=DARK)
        ax.annotate(method, (result["width"], result["f"]), xytext=(6, 4), textcoords="offset points", fontsize=9)
    ax.set(xlabel="average width", ylabel="share of points with f inside", xlim=(0.25, 1.15), ylim=(0.8, 1.01))
    ax.set_title("which method?", loc="left")


even = np.linspace(-2, 2, 2000)
limit = fit(even, truth(even), "sectioning").predict(GRID[:, None])  # h*: many rows, no noise, the same λ
trials = {method: [trial(method, seed, limit) for seed in range(DATA_SETS)] for method in METHODS}
results = {method: averages(of_method) for method, of_method in trials.items()}
default = results["truth"]

print("| interval of the default | f at a point | f at all 50 points | one new y | average width |")
print("|---|---|---|---|---|")
print(f"| `conf_int` | {default['f']:.2f} | {default['f everywhere']:.2f} | {default['y']:.2f} | {default['width']:.2f} |")
print(f"| `simultaneous` | | {default['f everywhere, band']:.2f} | | {default['width, band']:.2f} |")
print(f"| `pred_int` | | | {default['y, prediction']:.2f} | {default['width, prediction']:.2f} |")
print("| `interval=` | holds f | holds h\\* | average width |")
print("|---|---|---|---|")
for method, result in results.items():
    print(f'| `"{method}"` | {result["f"]:.2f} | {result["h*"]:.2f} | {result["width"]:.2f} |')

typical = int(np.argsort([one["width"] for one in trials["truth"]])[DATA_SETS // 2])  # the data set of median width
x, y, _ = draw(typical)
prediction = fit(x, y, "truth", typical).get_prediction(GRID[:, None])
figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
draw_intervals(axes[0], prediction, x, y)
draw_bands(axes[1], prediction)
for ax in axes[:2]:
    ax.plot(GRID, prediction.mean, color=DARK, label="prediction")
    ax.plot(GRID, truth(GRID), ":", color="black", lw=1.5, label="f")
    ax.set(xlabel="x", ylim=(-2.4, 3.2))
    ax.legend(frameon=False, loc="upper left")
draw_methods(axes[2], results)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "which_interval.png", dpi=100)
