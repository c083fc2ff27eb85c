"""How fast real networks train: ten networks of a cheap bootstrap, eight of batching; gradient descent and Gauss-Newton.

The floor of a gradient step is memory traffic. One hidden layer of B networks, n rows and width w has B·n·w numbers; a step
must write the pre-activations and read them for the outputs and for the gradient, 12 bytes each in float32. Written with
ordinary tensor operations about a dozen such passes happen. The floor uses the copy bandwidth measured in the same run.

    python benchmarks/network_training.py [--device cuda] [--rows 1024]
"""

import argparse
import time

import numpy as np
import torch

from unseed import MLP, Batching, CheapBootstrap, GaussNewton, GradientDescent, NetworkEngine, PNCRegressor


def synchronised(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()


def timed(job, device, repetitions=3):
    job()
    times = []
    for _ in range(repetitions):
        start = synchronised(device)
        job()
        times.append(synchronised(device) - start)
    return min(times)


def copy_bandwidth(device):
    """Bytes per second of a large copy, read and write counted."""
    source = torch.empty(1 << 28 if device.startswith("cuda") else 1 << 25, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / timed(lambda: target.copy_(source), device, 5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=1024)
    options = parser.parse_args()
    n, d, device = options.rows, 16, options.device
    width = 32 * n
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 0.2, size=(n, d))
    y = np.sin(X).sum(axis=1) + 0.001 * rng.standard_normal(n)

    def fit(interval, trainer):
        engine = NetworkEngine(width=width, trainer=trainer)
        reg = PNCRegressor(interval=interval, engine=engine, network=MLP(), regularization=1e-10, random_state=0, device=device)
        return reg.fit(X, y)

    bandwidth = copy_bandwidth(device)
    print(f"n = {n}, d = {d}, width {width}, float32, {device}; copy bandwidth {bandwidth / 1e9:.0f} GB/s")
    epochs = GradientDescent(steps=80, rate=0.01)
    numbers = {"cheap bootstrap, 10 networks": 2 * (n + 4 * 0.632 * n) * width, "batching, 8 networks": 2 * n * width}
    for (name, size), interval in zip(numbers.items(), (CheapBootstrap(4), Batching(4)), strict=True):
        seconds = timed(lambda interval=interval: fit(interval, epochs), device)
        floor = 80 * 12 * size / bandwidth
        print(f"  {name:30} 80 epochs {seconds:7.3f} s   floor {floor:6.3f} s   {seconds / floor:5.1f} × the floor")
    long = timed(lambda: fit(CheapBootstrap(4), GradientDescent(steps=500, rate=0.01)), device, 1)
    newton = timed(lambda: fit(CheapBootstrap(4), GaussNewton()), device, 1)
    convergence = fit(CheapBootstrap(4), GaussNewton()).convergence_
    print(f"  gradient descent, 500 epochs      {long:7.3f} s")
    print(
        f"  Gauss-Newton, {convergence.steps} steps           {newton:7.3f} s   ratio {newton / long:.2f}   "
        f"gradient left {convergence.relative_gradient.max():.1e}"
    )


if __name__ == "__main__":
    main()
