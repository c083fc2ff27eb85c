"""A torch module of one's own: what its seed does, what PNC takes out, and what the start has to do with it."""

import numpy as np
from torch import nn

from unseed import GaussNewton, NetworkEngine, PNCRegressor, SingleNetworkRegressor

SEEDS = range(4)


class Residual(nn.Module):
    """A layer, a block whose output is added to its input, and one output."""

    def __init__(self, width=128):
        super().__init__()
        self.first = nn.Linear(10, width)
        self.block = nn.Sequential(nn.LayerNorm(width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.last = nn.Linear(width, 1)

    def forward(self, x):
        """Rows of shape (n, 10) to predictions of shape (n, 1)."""
        start = self.first(x)
        return self.last(start + self.block(start))


def with_large_start():
    """The same module with He's normal start, which makes the untrained network larger than y."""
    module = Residual()
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight)
    return module


def truth(X):
    """The function behind the data."""
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


rng = np.random.default_rng(0)
X, X_new = rng.uniform(-1, 1, (60, 10)), rng.uniform(-1, 1, (50, 10))
y = truth(X) + 0.1 * rng.standard_normal(60)


def over_seeds(estimator):
    """Predictions under several seeds: how far they scatter at a point, and how far they are from the truth."""
    predictions = np.array([estimator.set_params(random_state=seed).fit(X, y).predict(X_new) for seed in SEEDS])
    return predictions.std(axis=0, ddof=1).mean(), np.sqrt(np.mean((predictions - truth(X_new)) ** 2))


print("| start of the module | | scatter over seeds | RMSE |")
print("|---|---|---|---|")
for name, network in (("torch's default", Residual), ("He's normal", with_large_start)):
    options = {"engine": "linearized", "network": network, "regularization": 0.01}
    alone = SingleNetworkRegressor(interval=None, **options)
    corrected = PNCRegressor(interval="sectioning", **options)
    for kind, estimator in (("single network", alone), ("PNC", corrected)):
        scatter, error = over_seeds(estimator)
        print(f"| {name} | {kind} | {scatter:.2f} | {error:.2f} |")

engine = NetworkEngine(trainer=GaussNewton())
trained = PNCRegressor(engine=engine, network=Residual, regularization=0.1, interval="batching", random_state=0).fit(X, y)
print(trained.diagnose())
