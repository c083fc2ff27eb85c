"""Choosing network and λ for a loss that bends, by Laplace's evidence: the search is that of the square."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from unseed._progress import Progress
from unseed._random import Streams
from unseed._selection.choice import AutoNetwork, Candidate, Choice, Selection
from unseed._selection.laplace import LaplaceEvidence, likeliest_dispersion, log_likelihood, pack
from unseed._selection.objective import ScaleObjective, Terms
from unseed._selection.search import SIMPLE, representative_rows, search
from unseed._solvers.curved import Bent, solve_bent
from unseed.errors import InvalidInputError, SingularKernelError
from unseed.kernels import PopulationKernel
from unseed.losses import Logistic, Loss, is_location
from unseed.networks import MLP

_RIDGE_ROWS, _RIDGES = 400, np.logspace(-8, 3, 12)  # rows that λ is chosen on; tried, relative to the kernel's mean diagonal
_TOLERANCE = 1e-7
_TERMS = Terms(is_prior=True)
_KNOWN_DISPERSION = Terms(is_prior=True, ridge=(math.log(0.3), 1.5), charge=0.2)
"""Log-odds and logarithms of rates vary by one or so: few events do not make them vary by nothing, and intervals close up. A
label that is a class or a count tells less of a scale than a number does; the charge was set by benchmarks/classes.py."""


class LabelledRows(NamedTuple):
    """Rows with labels, where their fits start, and how much they count."""

    X: Tensor  # (n, d)
    labels: Tensor  # (n, k)
    starts: Tensor  # (n, k)
    weights: Tensor  # (n,)

    def distinct(self) -> LabelledRows:
        """Rows that are the same in everything as one that counts as much as all of them."""
        together = torch.cat([self.X.flatten(1), self.labels, self.starts], dim=1).cpu().numpy()
        _, first, place = np.unique(together, axis=0, return_index=True, return_inverse=True)
        total = np.bincount(place.reshape(-1), weights=self.weights.cpu().numpy())
        order = np.argsort(first)
        rows = torch.from_numpy(first[order]).to(self.X.device)
        return self.some(rows)._replace(weights=torch.from_numpy(total[order]).to(self.weights))

    def some(self, rows: Tensor) -> LabelledRows:
        """Of these places."""
        return LabelledRows(*(part[rows] for part in self))


def select_bent(
    rows: LabelledRows, loss: Loss, streams: Streams, options: AutoNetwork, progress: Progress | None = None
) -> Selection:
    """Network and λ with the largest Laplace evidence.

    For several classes that is the mean of each against the rest, which costs as much as so many logistic fits; λ is then
    chosen for all of them together.
    """
    if options.criterion != "evidence":
        raise InvalidInputError(f"AutoNetwork(criterion={options.criterion!r}) is for loss='squared'; use criterion='evidence'")
    total, rows = float(rows.weights.sum()), rows.distinct()
    generator = streams.generator("selection")
    single, asked = loss, rows
    if loss.is_joint:
        single = Logistic()
        asked = rows._replace(starts=single.start(rows.labels, rows.weights).expand(rows.labels.shape))
    packed = pack(asked.labels, asked.starts, asked.weights)
    terms = _TERMS if is_location(loss) or loss.dispersion is None else _KNOWN_DISPERSION
    few, more, _, most = options.stages(0)  # whatever the number of rows: an evaluation is several Newton steps
    objectives = [
        ScaleObjective(rows.X[chosen], packed[chosen], SIMPLE[0], LaplaceEvidence(single), terms)
        for chosen in (representative_rows(rows.X, n, generator) for n in (few, more, most))
    ]
    ranked = search([*objectives, objectives[-1]], options, progress)
    candidates = [Candidate(one.network(), one.ridge() / total, one.penalised) for one in ranked]
    if loss.is_joint:
        best = choose_penalty(candidates[0].network, rows, loss, streams, near=candidates[0].regularization * total)
        factor = best / (candidates[0].regularization * total)
        candidates = [Candidate(one.network, one.regularization * factor, one.score) for one in candidates]
    return Selection(tuple(candidates), options.criterion)


def choose_for_bent(
    rows: LabelledRows, network: MLP | AutoNetwork, given: float | None, loss: Loss, streams: Streams, progress: Progress
) -> Choice:
    """Network and λ as given, or chosen."""
    if isinstance(network, AutoNetwork):
        selection = select_bent(rows, loss, streams, network, progress)
        return Choice(selection.best.network, selection.best.regularization if given is None else given, selection)
    total = float(rows.weights.sum())
    return Choice(network, choose_penalty(network, rows.distinct(), loss, streams) / total if given is None else given)


def choose_penalty(network: MLP, rows: LabelledRows, loss: Loss, streams: Streams, near: float | None = None) -> float:
    """λN with the largest evidence, which does not depend on how many rows there are; near one that is known, or anywhere."""
    if len(rows.X) > _RIDGE_ROWS:
        chosen = streams.generator("selection", "ridge").permutation(len(rows.X))[:_RIDGE_ROWS]
        rows = rows.some(torch.from_numpy(np.sort(chosen)).to(rows.X.device))
    kernel = PopulationKernel(network)
    matrix = kernel.ntk_gram(kernel.profile(rows.X))
    scale = float(matrix.diagonal().mean())
    if scale == 0:  # a network that sees nothing of X predicts its mean at every ridge
        return 1.0
    score = _evidence_of(matrix, rows, loss)
    logs = np.log(scale * _RIDGES) if near is None else math.log(near) + np.linspace(-3, 3, 7)
    values = [score(log) for log in logs]
    best = int(np.argmax(values))
    bounds = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
    found = minimize_scalar(lambda log: -score(log), bounds=bounds, method="bounded", options={"xatol": 0.02})
    return float(np.exp(found.x if -found.fun > values[best] else logs[best]))


def _evidence_of(matrix: Tensor, rows: LabelledRows, loss: Loss) -> Callable[[float], float]:
    def score(log: float) -> float:
        problem = Bent(matrix, rows.labels, rows.starts, rows.weights, math.exp(log), loss)
        try:
            fit = solve_bent(problem, tolerance=_TOLERANCE)
            determinant = problem.curvature(fit.values).log_determinant
        except SingularKernelError:
            return -math.inf
        cost = problem.cost(fit.dual / problem.share, fit.values)
        dispersion = likeliest_dispersion(loss, cost, rows.labels, rows.weights)
        value = log_likelihood(loss, cost, rows.labels, rows.weights, dispersion) - determinant / 2
        return value if math.isfinite(value) else -math.inf

    return score
