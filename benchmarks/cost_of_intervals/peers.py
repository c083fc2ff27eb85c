"""What is timed: ours, floors, the same mathematics by others, and other methods, each as somebody would use it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.neural_network import MLPRegressor

from cost_of_intervals import floors
from cost_of_intervals.floors import Job
from cost_of_intervals.problem import NETWORK, REGULARIZATION, REPLICATIONS, Problem, ours
from unseed.kernels import ntk

OURS = "unseed: cheap bootstrap, R = 4"
ENTRIES = "one bare arccos and matrix product"
GRAM = "one bare Gram matrix"
CHOLESKY = "one bare Cholesky factorisation"
SAME = "the same by KernelRidge, R + 1 times"
MAPIE = "MAPIE: jackknife after bootstrap, MLPRegressor"
LAPLACE = "laplace-torch: trained network, last layer"


def jobs(problem: Problem) -> dict[str, Job]:
    """Everything that is timed here, by name; methods whose package cannot be used are not among them."""
    X, y, X_new = problem.X, problem.y, problem.X_new
    found: dict[str, Job] = {
        OURS: lambda: ours().fit(X, y).predict_interval(X_new),
        CHOLESKY: floors.cholesky(X),
        GRAM: lambda: ntk(X, network=NETWORK),
        ENTRIES: floors.entries(X),
        SAME: partial(_kernel_ridge, problem),
        "Gaussian process of scikit-learn": partial(_gaussian_process, problem),
        "deep ensemble of 5 MLPRegressors": partial(_ensemble, problem),
    }
    absent = left_out()
    return found | {name: partial(job, problem) for name, (_, job) in OPTIONAL.items() if name not in absent}


def left_out() -> dict[str, str]:
    """Methods whose package cannot be used here, and why."""
    return {name: reason for name, (package, _) in OPTIONAL.items() if (reason := _hindrance(package))}


def in_short(error: BaseException) -> str:
    """Kind and first line of an error."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _hindrance(package: str) -> str | None:
    """Why an optional package cannot be used: one that was built for another torch is there and cannot be imported."""
    if find_spec(package) is None:
        return "not installed; pip install 'unseed[benchmark]'"
    try:
        import_module(package)
    except Exception as error:
        reason = f"cannot be imported ({in_short(error)})"
        # laplace-torch asks for torchvision and does not use it; PyPI's is for torch with CUDA.
        return reason + ("; it works without torchvision: pip uninstall torchvision" if "torchvision" in reason else "")
    return None


def _kernel_ridge(problem: Problem) -> None:
    rng, n = np.random.default_rng(0), len(problem.X)
    for rows in (np.arange(n), *(rng.integers(n, size=n) for _ in range(REPLICATIONS))):
        X = problem.X[rows]
        fitted = KernelRidge(alpha=REGULARIZATION * n, kernel="precomputed").fit(ntk(X, network=NETWORK), problem.y[rows])
        fitted.predict(ntk(problem.X_new, X, network=NETWORK))


def _gaussian_process(problem: Problem) -> None:
    fitted = GaussianProcessRegressor(RBF() + WhiteKernel(), normalize_y=True).fit(problem.X, problem.y)
    fitted.predict(problem.X_new, return_std=True)


def _ensemble(problem: Problem) -> None:
    for seed in range(5):
        MLPRegressor(max_iter=500, random_state=seed).fit(problem.X, problem.y).predict(problem.X_new)


def _mapie(problem: Problem) -> None:
    from mapie.regression import JackknifeAfterBootstrapRegressor

    fitted = JackknifeAfterBootstrapRegressor(MLPRegressor(max_iter=500, random_state=0), confidence_level=0.95, random_state=0)
    fitted.fit_conformalize(problem.X, problem.y).predict_interval(problem.X_new)


def _laplace(problem: Problem) -> None:
    """A network trained as laplace-torch's own examples do, then its last layer's posterior and its precision tuned."""
    from laplace import Laplace
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    X, y, X_new = (torch.tensor(values, dtype=torch.float32) for values in (problem.X, problem.y[:, None], problem.X_new))
    model = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 100), torch.nn.ReLU(), torch.nn.Linear(100, 1))
    loader = DataLoader(TensorDataset(X, y), batch_size=200, shuffle=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(500):
        for inputs, labels in loader:
            optimiser.zero_grad()
            torch.autograd.backward(torch.nn.functional.mse_loss(model(inputs), labels))
            optimiser.step()
    posterior = Laplace(model, "regression", subset_of_weights="last_layer", hessian_structure="full")
    posterior.fit(loader)
    posterior.optimize_prior_precision()
    posterior(X_new)


OPTIONAL: dict[str, tuple[str, Callable[[Problem], None]]] = {MAPIE: ("mapie", _mapie), LAPLACE: ("laplace", _laplace)}
