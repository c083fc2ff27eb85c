"""How finite networks approach the kernel: distances at growing width, and what PNC does to the spread over seeds.

python benchmarks/width_limit.py [--device cuda] [--seeds 50]
"""

import argparse
import warnings

import numpy as np
import torch

from unseed import MLP, InfinitesimalJackknife, LinearizedEngine, NetworkEngine, PNCRegressor

warnings.simplefilter("ignore")


def data(d, n=128, seed=0):
    """The paper's synthetic data #1, standardised as the estimator does."""
    rng = np.random.default_rng(seed)
    X, X_new = rng.uniform(0, 0.2, size=(n, d)), rng.uniform(0, 0.2, size=(50, d))
    return X, np.sin(X).sum(axis=1) + 0.001 * rng.standard_normal(n), X_new


def fitted(X, y, engine, seed, device, regularization, scale_inputs=False):
    network = MLP(bias_scale=1.0, scale_inputs=scale_inputs)
    options = {"engine": engine, "network": network, "regularization": regularization, "random_state": seed, "device": device}
    return PNCRegressor(interval=InfinitesimalJackknife(), **options).fit(X, y)


def pnc_and_single(reg, X_new):
    """PNC prediction and base network, on standardised y."""
    replicates = reg._replicates
    base, auxiliary = replicates.trained.predict(replicates.at(X_new).points)[0].unbind(1)
    return (base - auxiliary)[:, 0].cpu().numpy(), base[:, 0].cpu().numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--widths", type=int, nargs="+", default=[512, 4096, 32768])
    parser.add_argument("--regularization", type=float, default=1e-4)
    parser.add_argument("--scale-inputs", action="store_true", help="as network='auto' does")
    options = parser.parse_args()
    device, lam, scaled = options.device, options.regularization, options.scale_inputs
    print(f"synthetic #1, n = 128, λ = {lam:g}; mean absolute distance at 50 points on standardised y, 5 seeds")
    for d in (2, 16):
        X, y, X_new = data(d)
        reg = fitted(X, y, "kernel", 0, device, lam, scaled)
        kernel = (reg.predict(X_new) - y.mean()) / y.std()
        rows = []
        for width in options.widths:
            distances = []
            for seed in range(5):
                linear, _ = pnc_and_single(fitted(X, y, LinearizedEngine(width=width), seed, device, lam, scaled), X_new)
                trained, single = pnc_and_single(fitted(X, y, NetworkEngine(width=width), seed, device, lam, scaled), X_new)
                pairs = ((trained, linear), (linear, kernel), (trained, kernel), (single, kernel))
                distances.append([np.abs(a - b).mean() for a, b in pairs])
            rows.append(np.mean(distances, axis=0))
            print(
                f"  d = {d:2} width {width:6}: network-linearized {rows[-1][0]:.5f}  linearized-kernel {rows[-1][1]:.5f}  "
                f"PNC-kernel {rows[-1][2]:.5f}  single-kernel {rows[-1][3]:.4f}"
            )
        slopes = np.polyfit(np.log(options.widths), np.log(np.array(rows)), 1)[0]
        print(f"  d = {d:2} slopes in log width: {', '.join(f'{slope:.2f}' for slope in slopes)} (theory: -0.5, first three)")
        pnc, single = zip(
            *(
                pnc_and_single(fitted(X, y, NetworkEngine(width=4096), s, device, lam, scaled), X_new)
                for s in range(options.seeds)
            ),
            strict=True,
        )
        ratio = np.var(pnc, axis=0).mean() / np.var(single, axis=0).mean()
        distance = [np.abs(np.array(p) - kernel).mean() for p in (pnc, single)]
        print(
            f"  d = {d:2} width 4096 = 32 n, {options.seeds} seeds: variance of PNC / single network {ratio:.4f}; distance to "
            f"the kernel {distance[0]:.4f} (PNC), {distance[1]:.4f} (single), ratio {distance[1] / distance[0]:.1f}"
        )


if __name__ == "__main__":
    main()
