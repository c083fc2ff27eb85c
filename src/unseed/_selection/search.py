"""Choosing activation, depth, scales, relevances and λ from the data alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from unseed._progress import Progress
from unseed._random import Streams
from unseed._results import FloatArray
from unseed._selection.choice import CLOSE, AutoNetwork, Candidate, Selection
from unseed._selection.objective import Architecture, Optimum, ScaleObjective, evidence, resolve_criterion
from unseed._threads import on_all_cores, one_thread, threads_for
from unseed.kernels import PopulationKernel
from unseed.networks import MLP

SIMPLE = tuple(Architecture(activation, 1) for activation in ("erf", "sin", "relu"))
DEEPER = tuple(Architecture(activation, 2) for activation in ("erf", "relu"))
_RELEVANCE_SCALES = (8.0, 2.0)
_BRIEF, _SHORT, _LONG, _COMPARE, _POLISH = 12, 20, 60, 15, 20  # evaluations of an ascent
_COMPARE_RELEVANCES, _LAST = 30, 10  # on many rows
_KEPT = 3  # ascents that go on after the first evaluations
_TOO_FAR_BEHIND = 0.1  # a common scale after the first evaluations: relevances do not pay
_SAME_OPTIMUM = 0.02  # difference of scores below which two ascents of an architecture count as one
_UNDECIDED = 0.02  # difference of scores below which more rows decide
_ASCENTS = 40  # about so many in all, for the progress bar

NEIGHBOURS, RIDGE_ROWS = 20, 400
"""Rows of a group of close ones; rows above which the leave-one-out error that λ is chosen by is that of a random subset."""
_RIDGES = np.logspace(-10, 4, 43)  # relative to the mean diagonal of the kernel


def select_network(
    X: Tensor, labels: Tensor, streams: Streams, options: AutoNetwork | None = None, progress: Progress | None = None
) -> Selection:
    """Maximise a criterion over architectures and scales.

    Every activation starts from the two best points of a coarse grid, with one scale common to all features, and from more
    with a scale for every feature (its relevance), each of which costs ½ log n, so that many features with few rows keep a
    common scale. The best point is tried with all other architectures. The best of each activation are compared on more
    rows, and the winner is polished on as many as are allowed. Nothing is random but the rows.

    Several outputs, the columns of labels (n_rows, n_outputs), share network and ridge; each has its own amplitude, and
    constant ones have no say.
    """
    options, n_rows = options or AutoNetwork(), len(X)
    varying = labels.std(dim=0, correction=0) > 0
    labels = labels[:, varying] if bool(varying.any()) else labels[:, :1]
    distinct = _distinct_rows(X, labels)
    X, labels = X[distinct], labels[distinct]
    generator = streams.generator("selection")
    criterion, stages = resolve_criterion(options.criterion), options.stages(len(X))
    subsets = [representative_rows(X, n, generator) for n in dict.fromkeys(stages)]
    objectives = [ScaleObjective(X[rows], labels[rows], SIMPLE[0], criterion) for rows in subsets]
    ranked = search([objectives[min(place, len(objectives) - 1)] for place in range(len(stages))], options, progress)
    candidates = [Candidate(one.network(), one.ridge() / n_rows, one.penalised) for one in ranked]
    return Selection(tuple(candidates), options.criterion)


def search(objectives: Sequence[ScaleObjective], options: AutoNetwork, progress: Progress | None = None) -> list[Optimum]:
    """Networks that were looked at, best first: by an objective on few rows, and on more and more, one for each stage."""
    few, more, most, last = objectives
    with (progress or Progress()).steps("choosing the network", _ASCENTS) as step:
        return _Search(few, more, most, last, options.relevance, step).ranked()


def _distinct_rows(X: Tensor, labels: Tensor) -> Tensor:
    """First of all rows that are the same, label included: copies would pass for a lack of noise."""
    together = torch.cat([X, labels], dim=1).cpu().numpy()
    first = np.unique(together, axis=0, return_index=True)[1]
    return torch.from_numpy(np.sort(first)).to(X.device)


def representative_rows(X: Tensor, n_rows: int, generator: np.random.Generator) -> Tensor:
    """Indices of rows that stand for all, sorted: half of them anywhere, half close together.

    Rows far apart tell the large scales of a function; only close ones tell its fine structure from noise. A random subset of
    many rows has few close pairs, and what all the rows could resolve would be taken for noise. Closeness is Euclidean, of
    standardised features (n, d).
    """
    if len(X) <= n_rows:
        return torch.arange(len(X), device=X.device)
    order = generator.permutation(len(X))
    anchors = torch.from_numpy(order[: n_rows // (2 * NEIGHBOURS)].copy()).to(X.device)
    groups = torch.cdist(X[anchors], X).topk(min(NEIGHBOURS, n_rows), largest=False).indices.flatten()
    close = np.unique(groups.cpu().numpy())
    elsewhere: npt.NDArray[np.int64] = order[~np.isin(order, close)][: n_rows - len(close)]
    return torch.from_numpy(np.sort(np.concatenate([close, elsewhere]))).to(X.device)


def evidence_ahead(X: Tensor, labels: Tensor, network: MLP, ridge: float) -> float:
    """Evidence per row of the best simple network of a coarse grid, less that of a given one with λn = ridge: no ascent."""
    kernel = PopulationKernel(network)
    matrix = kernel.ntk_gram(kernel.profile(X))
    matrix.diagonal().add_(ridge)
    with one_thread():
        own = evidence(matrix, labels)
        objectives = [ScaleObjective(X, labels, architecture, evidence) for architecture in SIMPLE]
        best = max(score for objective in objectives for score, _ in objective.coarse())
    return best - own.value if own is not None else math.inf


@dataclass(frozen=True)
class RidgePath:
    """Leave-one-out error of kernel ridge regression at any ridge, from one eigendecomposition.

    The error at row i is α_i / (A⁻¹)_ii with A = K + ridge · I and α = A⁻¹ y: exactly what refitting without row i and
    predicting y_i would give.
    """

    eigenvalues: Tensor  # (n,)
    vectors: Tensor  # (n, n)
    projected: Tensor  # (n, n_outputs) labels in the eigenbasis

    @classmethod
    def of(cls, kernel: Tensor, labels: Tensor) -> RidgePath:
        """Diagonalise once."""
        eigenvalues, vectors = torch.linalg.eigh(kernel)
        return cls(eigenvalues.clamp_min(0.0), vectors, vectors.T @ labels)

    def errors(self, ridges: npt.ArrayLike) -> Tensor:
        """Leave-one-out residuals at several ridges. Shape (n_ridges, n, n_outputs)."""
        ridge = torch.as_tensor(np.atleast_1d(ridges), dtype=self.eigenvalues.dtype, device=self.eigenvalues.device)
        inverse = 1 / (self.eigenvalues[:, None] + ridge)  # (n, n_ridges)
        scaled = inverse[:, :, None] * self.projected[:, None, :]  # (n, n_ridges, n_outputs)
        weights = (self.vectors @ scaled.flatten(1)).reshape(scaled.shape)
        return (weights / (self.vectors.square() @ inverse)[:, :, None]).permute(1, 0, 2)

    def mean_square(self, ridges: npt.ArrayLike) -> FloatArray:
        """Mean squared leave-one-out residual over rows and outputs. Shape (n_ridges,)."""
        return self.errors(ridges).square().mean(dim=(1, 2)).cpu().numpy()


def choose_regularization(
    X: Tensor, labels: Tensor, network: MLP, streams: Streams, largest: float = float(_RIDGES[-1])
) -> float:
    """λ_n with the smallest leave-one-out error, of ridges up to ``largest`` times the mean diagonal of the kernel.

    What is carried from a subset to all rows is the ridge λn, the noise-to-signal ratio of the labels, which does not
    depend on how many rows there are.
    """
    n_rows = len(X)
    if n_rows > RIDGE_ROWS:
        rows = torch.from_numpy(np.sort(streams.generator("selection").permutation(n_rows)[:RIDGE_ROWS])).to(X.device)
        X, labels = X[rows], labels[rows]
    kernel = PopulationKernel(network)
    matrix = kernel.ntk_gram(kernel.profile(X))
    scale = float(matrix.diagonal().mean())
    if scale == 0:  # a network that sees nothing of X predicts its mean at every ridge
        return 1.0 / n_rows
    path, ridges = RidgePath.of(matrix, labels), scale * _RIDGES[largest * (1 + 1e-9) >= _RIDGES]
    scores = path.mean_square(ridges)
    best = int(np.argmin(scores))
    bracket = np.log(ridges[max(best - 1, 0)]), np.log(ridges[min(best + 1, len(ridges) - 1)])
    refined = minimize_scalar(
        lambda log_ridge: path.mean_square(np.exp(log_ridge)).item(), bounds=bracket, method="bounded", options={"xatol": 0.01}
    )
    return float(np.exp(refined.x) if refined.fun < scores[best] else ridges[best]) / n_rows


_penalised = attrgetter("penalised")


@dataclass(frozen=True)
class _Search:
    """The criterion on few rows and on more and more; whether features may have scales of their own; what counts ascents."""

    few: ScaleObjective
    more: ScaleObjective
    most: ScaleObjective
    last: ScaleObjective
    with_relevance: bool
    step: Callable[..., None]

    def ranked(self) -> list[Optimum]:
        """Best first."""
        with one_thread():  # matrices too small for two
            found = [self._common_scale(replace(self.few, architecture=architecture)) for architecture in SIMPLE]
            if self.with_relevance and self.few.X.shape[1] > 1:
                found += self._relevances(found)
            found += self._transferred(max(found, key=_penalised))
        if len(self.more.X) > len(self.few.X):
            found = self._all_on(self.more, _best_of_each_activation(found), _COMPARE)
        ranked = _distinct(found)
        if len(self.last.X) > len(self.most.X):
            return self._grown(*self._with_relevances(*ranked))
        return self._polished(*ranked) if len(self.most.X) > len(self.more.X) else ranked

    def _common_scale(self, objective: ScaleObjective) -> Optimum:
        brief = [self._ascend(objective, start, _BRIEF) for _, start in objective.coarse()[:2]]
        return self._restarted(self._onwards(max(brief, key=_penalised)))

    def _relevances(self, shared: list[Optimum]) -> list[Optimum]:
        """A scale for every feature, from many starts: most ascents stop early, the best go on."""
        d = self.few.X.shape[1]
        first = []
        for common in shared:
            starts = [np.concatenate([np.full(d, common.point[0]), common.point[1:]])]
            starts += [common.objective.start(scale, 1e-2, d) for scale in _RELEVANCE_SCALES]
            first += [self._ascend(common.objective, start, _SHORT) for start in starts]
        enough = max(map(_penalised, shared)) - _TOO_FAR_BEHIND
        longer = [self._onwards(one) for one in _distinct(first)[:_KEPT] if one.penalised > enough]
        longer.sort(key=_penalised, reverse=True)
        return [self._restarted(one) for one in longer[:1]] + longer[1:]

    def _transferred(self, best: Optimum) -> list[Optimum]:
        """Other architectures from the best point so far: what is relevant to one network is relevant to another."""
        others = [replace(self.few, architecture=other) for other in (*SIMPLE, *DEEPER) if other != best.architecture]
        first = [self._ascend(objective, best.point, _SHORT) for objective in others]
        return [self._onwards(one) if one.penalised > best.penalised - CLOSE else one for one in first]

    def _polished(self, best: Optimum, *others: Optimum) -> list[Optimum]:
        """The winner on all the rows allowed, and one of another activation where it is close: more rows decide."""
        unlike = [one for one in others if one.architecture.activation != best.architecture.activation]
        rivals = [one for one in unlike[:1] if one.penalised > best.penalised - _UNDECIDED]
        finalists = self._all_on(self.most, [best, *rivals], _POLISH)
        return sorted(finalists, key=_penalised, reverse=True) + [one for one in others if one not in rivals]

    def _with_relevances(self, best: Optimum, *others: Optimum) -> list[Optimum]:
        """The best of two activations on many rows, which may see relevances that the first few did not."""
        unlike = [one for one in others if one.architecture.activation != best.architecture.activation]
        close = [best, *(one for one in unlike[:1] if one.penalised > best.penalised - CLOSE)]
        wider = [one.with_relevances() for one in close if self.with_relevance and not one.has_relevances]
        finalists = self._all_on(self.most, [*close, *wider], _COMPARE_RELEVANCES)
        return sorted(finalists, key=_penalised, reverse=True) + [one for one in others if one not in close]

    def _grown(self, best: Optimum, *others: Optimum) -> list[Optimum]:
        """The winner from where it is on the most rows: the more there are, the finer what they tell from noise."""
        with threads_for(len(self.last.X)):
            grown = self._ascend(replace(self.last, architecture=best.architecture), best.point, _LAST)
        return [grown, *others]

    def _restarted(self, found: Optimum) -> Optimum:
        """Look again for structure that an ascent may have taken for noise, a collapse above all."""
        again = self._ascend(found.objective, found.restart, _BRIEF)
        return self._onwards(again) if again.score > found.score else found

    def _onwards(self, found: Optimum) -> Optimum:
        return self._ascend(found.objective, found.point, _LONG)

    def _all_on(self, rows: ScaleObjective, found: list[Optimum], evaluations: int) -> list[Optimum]:
        """The same architectures from the same points, on other rows: at the same time, each on one thread.

        Two threads for one matrix wait for each other on a busy machine.
        """

        def on_these(one: Optimum) -> Optimum:
            return self._ascend(replace(rows, architecture=one.architecture), one.point, evaluations)

        return on_all_cores(on_these, found, rows.X.device)

    def _ascend(self, objective: ScaleObjective, start: FloatArray, evaluations: int) -> Optimum:
        found = objective.maximise(start, evaluations)
        self.step(score=found.score)
        return found


def _best_of_each_activation(found: list[Optimum]) -> list[Optimum]:
    best: dict[str, Optimum] = {}
    for one in sorted(found, key=_penalised, reverse=True):
        best.setdefault(one.architecture.activation, one)
    return list(best.values())


def _distinct(found: list[Optimum]) -> list[Optimum]:
    """Best first, without those that are the same optimum of the same architecture as a better one."""
    kept: list[Optimum] = []
    for one in sorted(found, key=_penalised, reverse=True):
        same = (other for other in kept if other.architecture == one.architecture)
        if all(abs(other.penalised - one.penalised) > _SAME_OPTIMUM for other in same):
            kept.append(one)
    return kept
