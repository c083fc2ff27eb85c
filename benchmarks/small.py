"""Coverage and width of the default's intervals from 3 rows on, beside an oracle's, and what it finds in pure noise.

    python benchmarks/small.py --part few --sets 40          n = 3 … 32: intervals for the truth
    python benchmarks/small.py --part middle --sets 6        n = 64, 256, 1,024: the same, and for a new y
    python benchmarks/small.py --part noise --sets 100       a given network on labels that are noise alone
    python benchmarks/small.py --part new_y --sets 60        n = 30 … 128: intervals for a new y

Functions of `TUNED_ON` were looked at while the method was made, by those of `HELD_BACK` no choice was made. Results go into
results/small.json, part by part; `--out` says otherwise.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

from unseed import MLP, PNCRegressor

RESULTS = Path(__file__).parents[1] / "results" / "small.json"

# Functions of points in [−1, 1]^d.
TUNED_ON = {
    "line": (1, lambda x: x[:, 0]),
    "wave": (1, lambda x: np.sin(3 * x[:, 0])),
    "bump": (1, lambda x: np.exp(-8 * x[:, 0] ** 2)),
    "sigmoid": (1, lambda x: np.tanh(4 * x[:, 0])),
    "kink": (1, lambda x: np.abs(x[:, 0] - 0.2)),
    "parabola": (2, lambda x: (x**2).sum(axis=1)),
    "product": (2, lambda x: x[:, 0] * x[:, 1] + x[:, 0]),
    "ridge": (2, lambda x: np.tanh(2 * x.sum(axis=1))),
    "waves": (2, lambda x: np.sin(3 * x[:, 0]) + np.cos(2 * x[:, 1])),
    "additive": (3, lambda x: np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + 0.5 * x[:, 2]),
    "interaction": (3, lambda x: np.sin(2 * x[:, 0]) * (1 + x[:, 1]) + x[:, 2]),
    "one of three": (3, lambda x: np.sin(3 * x[:, 1])),
}
HELD_BACK = {
    "growth": (1, lambda x: 1 / (1 + np.exp(-6 * (x[:, 0] - 0.3)))),
    "damped": (1, lambda x: np.exp(-x[:, 0]) * np.cos(4 * x[:, 0])),
    "cubic": (1, lambda x: x[:, 0] ** 3 - 0.6 * x[:, 0]),
    "saddle": (2, lambda x: x[:, 0] ** 2 - x[:, 1] ** 2),
    "peak": (2, lambda x: np.exp(-3 * ((x[:, 0] - 0.3) ** 2 + (x[:, 1] + 0.2) ** 2))),
    "bend": (3, lambda x: np.exp(0.8 * x[:, 0]) + np.cos(2 * x[:, 1] * x[:, 2])),
}
FUNCTIONS = TUNED_ON | HELD_BACK
LARGER = {  # features of the same functions that the labels do not know, where rows are many
    64: 0,
    256: 2,
    1024: 4,
}
POINTS = 100


def scaled(name):
    """The function with mean zero and variance one over the cube, and its features."""
    if name == "noise":
        return 2, lambda x: np.zeros(len(x))
    d, f = FUNCTIONS[name]
    values = f(np.random.default_rng(99).uniform(-1, 1, size=(20_000, d)))
    return d, lambda x: (f(x) - values.mean()) / values.std()


def one_fit(name, n, noise, seed, *, extra=0, **options):
    """What one data set says: coverage and width for f and for a new y, error, and what the diagnosis found."""
    d, f = scaled(name)
    rng = np.random.default_rng([seed, n, round(100 * noise), sum(map(ord, name))])
    X, at = rng.uniform(-1, 1, size=(n, d + extra)), rng.uniform(-1, 1, size=(POINTS, d + extra))
    scale = 1.0 if name == "noise" else noise
    y, new = f(X) + scale * rng.normal(size=n), f(at) + scale * rng.normal(size=POINTS)
    start = time.perf_counter()
    model = PNCRegressor(random_state=seed, **options).fit(X, y)
    p = model.get_prediction(at, seeds=False)
    seconds = time.perf_counter() - start
    truth, (low, high), (least, most) = f(at), p.conf_int(0.95).T, p.pred_int(0.95).T
    return {
        "held": float(np.mean((low <= truth) & (truth <= high))),
        "half_width": float(np.mean((high - low) / 2)),
        "held_new": float(np.mean((least <= new) & (new <= most))),
        "half_width_new": float(np.mean((most - least) / 2)),
        "noise": scale,
        "error": float(np.sqrt(np.mean((p.mean - truth) ** 2))),
        "constant": float(y.std(ddof=1) / np.sqrt(n)),
        "misfit": bool(model._replicates.misfit.mean_square[0] > 0),
        "varying": model._replicates.noise.shapes[0] is not None,
        "seconds": seconds,
    }


def cell(fits):
    """Averages over data sets; widths over those of an oracle who knows the error or the noise."""
    mean = {key: float(np.mean([fit[key] for fit in fits])) for key in fits[0]}
    error = float(np.sqrt(np.mean([fit["error"] ** 2 for fit in fits])))
    return {
        "sets": len(fits),
        "held": round(mean["held"], 4),
        "width_over_oracle": round(mean["half_width"] / (1.96 * error), 3),
        "held_new": round(mean["held_new"], 4),
        "width_over_oracle_new": round(mean["half_width_new"] / (1.96 * np.hypot(error, mean["noise"])), 3),
        "rmse": round(error, 5),
        "misfit": round(mean["misfit"], 4),
        "varying": round(mean["varying"], 4),
        "seconds": round(mean["seconds"], 3),
    }


def measured(grid, sets, **options):
    """Cells of (name, n, noise, extra features)."""
    found = []
    for name, n, noise, extra in grid:
        fits = [one_fit(name, n, noise, seed, extra=extra, **options) for seed in range(sets)]
        found.append({"function": name, "tuned_on": name in TUNED_ON or name == "noise", "n": n, "noise": noise, **cell(fits)})
        print(found[-1], flush=True)
    return found


def pure_noise(sets):
    """A given network on noise: looks that find something, and the interval's width over a sample mean's."""
    found = []
    network = MLP(activation="erf", bias_scale=1.0)
    for n in (30, 60, 200, 500):
        for d in (1, 3, 10, 30, 100):
            fits = []
            for seed in range(sets):
                rng = np.random.default_rng([seed, n, d])
                X, y, at = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=(POINTS, d))
                model = PNCRegressor(network=network, random_state=seed).fit(X, y)
                p = model.get_prediction(at, seeds=False)
                replicates = model._replicates
                fits.append(
                    (
                        replicates.misfit.mean_square[0] > 0,
                        replicates.noise.shapes[0] is not None,
                        p.standard_error.mean() / (y.std(ddof=1) / np.sqrt(n)),
                        np.mean(np.abs(p.mean) <= 1.96 * p.standard_error),
                    )
                )
            misfit, varying, width, held = np.array(fits, dtype=float).T
            row = {"n": n, "d": d, "sets": sets, "misfit": misfit.mean(), "varying": varying.mean()}
            row |= {"width_over_constant": np.exp(np.log(width).mean()), "held": held.mean()}
            found.append({key: round(float(value), 4) if isinstance(value, float) else value for key, value in row.items()})
            print(found[-1], flush=True)
    return found


def grid_of(part, functions):
    """Cells of a part."""
    names = [*functions, "noise"]
    if part == "few":
        return [(name, n, noise, 0) for n in (3, 5, 8, 16, 32) for name in names for noise in (0.1, 0.5, 1.0)]
    if part == "middle":
        return [(name, n, noise, extra) for n, extra in LARGER.items() for name in names for noise in (0.05, 0.5)]
    return [(name, n, noise, 0) for n in (30, 60, 128) for name in names for noise in (0.1, 0.5)]


def summary(found):
    """By n: mean and smallest coverage, mean width, for f and a new y, of functions tuned on and of those held back."""
    lines = []
    for n in sorted({row["n"] for row in found}):
        for tuned in (True, False):
            rows = [row for row in found if row["n"] == n and row["tuned_on"] is tuned]
            if rows:
                get = {key: np.array([row[key] for row in rows]) for key in rows[0] if key not in ("function", "tuned_on")}
                lines.append(
                    f"n={n:5d} {'tuned on' if tuned else 'held back'}: {len(rows):3d} cells, f {get['held'].mean():.3f} "
                    f"(smallest {get['held'].min():.3f}, {np.mean(get['held'] < 0.88):.0%} below .88) "
                    f"width/oracle {np.exp(np.log(get['width_over_oracle']).mean()):.2f}; "
                    f"y {get['held_new'].mean():.3f} ({get['held_new'].min():.3f}) "
                    f"{np.exp(np.log(get['width_over_oracle_new']).mean()):.2f}; "
                    f"rmse {np.exp(np.log(get['rmse']).mean()):.4f}; misfit {get['misfit'].mean():.2f} "
                    f"varying {get['varying'].mean():.2f}; {get['seconds'].mean():.2f} s"
                )
    return "\n".join(lines)


def main():
    """One part."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("few", "middle", "noise", "new_y"), required=True)
    parser.add_argument("--sets", type=int, required=True)
    parser.add_argument("--rows", type=int, nargs="*", help="only these n")
    parser.add_argument("--only", choices=("tuned_on", "held_back"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.part == "noise":
        found = pure_noise(asked.sets)
    else:
        functions = {"tuned_on": TUNED_ON, "held_back": HELD_BACK, None: FUNCTIONS}[asked.only]
        cells = [one for one in grid_of(asked.part, functions) if not asked.rows or one[1] in asked.rows]
        found = measured(cells, asked.sets)
        print(summary(found))
    results = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    asked.out.write_text(json.dumps(results | {asked.part: found}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
