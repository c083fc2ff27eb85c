"""Choosing activation, depth, scales, relevances and λ from the data alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseed._progress import Progress
from unseed._random import Streams
from unseed._results import FloatArray
from unseed._selection.choice import CLOSE, AutoNetwork, Candidate, Selection
from unseed._selection.criteria import Criterion, evidence, resolve_criterion
from unseed._selection.landscape import Architecture, Climb, Landscape
from unseed._selection.rows import representative_rows
from unseed._threads import on_all_cores, one_thread
from unseed.kernels import PopulationKernel
from unseed.networks import MLP

SIMPLE = tuple(Architecture(activation, 1) for activation in ("erf", "sin", "relu"))
DEEPER = tuple(Architecture(activation, 2) for activation in ("erf", "relu"))
_GRID_SCALES = (8.0, 3.0, 1.0, 0.3, 0.1)  # times 1/√d
_GRID_RIDGES = (1e-4, 3e-2, 0.5)
_RELEVANCE_SCALES = (8.0, 2.0)
_GLANCE, _FIRST, _LONGER, _COMPARE, _POLISH = 12, 20, 60, 15, 20  # evaluations of a climb
_KEPT = 3  # climbs that go on after the first evaluations
_HOPELESS = 0.1  # behind a common scale after the first evaluations: relevances do not pay
_SAME_HILL = 0.02  # difference of scores below which two climbs of an architecture count as one
_UNDECIDED = 0.02  # difference of scores below which more rows decide
_CLIMBS = 40  # about so many in all, for the progress bar
_FASTER = math.log(4.0)  # a restart looks for structure this much faster than the best so far, with a tenth of the noise


class Rows(NamedTuple):
    """Rows and their labels."""

    X: Tensor  # (n, d)
    labels: Tensor  # (n, n_outputs)


def select_network(
    X: Tensor, labels: Tensor, streams: Streams, options: AutoNetwork | None = None, progress: Progress | None = None
) -> Selection:
    """Maximise a criterion over architectures and scales.

    Every activation is climbed from the two best points of a coarse grid, with one scale common to all features, and from
    more starts with a scale for every feature (its relevance), which is charged ½ log n each, so that many features with
    few rows keep a common scale. The best point is tried with all other architectures. The best of each activation are
    compared on more rows, and the winner is polished on as many as are allowed. Nothing is random but the rows.

    Parameters
    ----------
    X : Tensor of shape (n_rows, n_features)
    labels : Tensor of shape (n_rows, n_outputs)
        Several outputs share network and ridge; each has its own amplitude, and constant ones have no say.
    streams : Streams
    options : AutoNetwork or None
    progress : Progress or None
    """
    options, n_rows = options or AutoNetwork(), len(X)
    varying = labels.std(dim=0, correction=0) > 0
    labels = labels[:, varying] if bool(varying.any()) else labels[:, :1]
    distinct = _distinct_rows(X, labels)
    X, labels = X[distinct], labels[distinct]
    generator = streams.generator("selection")
    subsets = [representative_rows(X, n_rows, generator) for n_rows in options.stages]
    few, more, most = (Rows(X[rows], labels[rows]) for rows in subsets)
    with (progress or Progress()).steps("choosing the network", _CLIMBS) as step:
        search = _Search(few, more, most, resolve_criterion(options.criterion), options.relevance, n_rows, step)
        candidates = search.candidates()
    return Selection(tuple(candidates), options.criterion)


def _distinct_rows(X: Tensor, labels: Tensor) -> Tensor:
    """First of all rows that are the same, label included: copies would pass for a lack of noise."""
    together = torch.cat([X, labels], dim=1).cpu().numpy()
    first = np.unique(together, axis=0, return_index=True)[1]
    return torch.from_numpy(np.sort(first)).to(X.device)


def evidence_ahead(X: Tensor, labels: Tensor, network: MLP, ridge: float) -> float:
    """Evidence per row of the best simple network of a coarse grid, less that of a given one: no climbing, a glance.

    Parameters
    ----------
    X : Tensor of shape (n_rows, n_features)
    labels : Tensor of shape (n_rows, n_outputs)
    network : MLP
    ridge : float
        λn, what is added to the diagonal of its kernel.
    """
    kernel = PopulationKernel(network)
    matrix = kernel.ntk_gram(kernel.profile(X))
    matrix.diagonal().add_(ridge)
    with one_thread():
        own = evidence(matrix, labels)
        rows = Rows(X, labels)
        search = _Search(rows, rows, rows, evidence, with_relevance=False, n_rows=len(X), step=lambda **figures: None)
        best = max(score for architecture in SIMPLE for score, _ in search.coarse(search.landscape(architecture)))
    return best - own.value if own is not None else math.inf


@dataclass(frozen=True, eq=False)
class _Found:
    """A climb and the landscape it ended in."""

    landscape: Landscape
    climb: Climb

    @property
    def charged(self) -> float:
        """Score less ½ log n for every scale beyond the first, per row."""
        n = len(self.landscape.X)
        return self.climb.score - 0.5 * math.log(n) * (len(self.climb.point) - 4) / n

    @property
    def faster(self) -> FloatArray:
        """Where to look for structure that this climb took for noise."""
        steps = np.array([_FASTER] * (len(self.climb.point) - 3) + [0.0, 0.0, -math.log(10.0)])
        return np.asarray(self.climb.point + steps)


@dataclass(frozen=True)
class _Search:
    few: Rows
    more: Rows
    most: Rows
    criterion: Criterion
    with_relevance: bool
    n_rows: int
    step: Callable[..., None]

    def candidates(self) -> list[Candidate]:
        with one_thread():  # matrices too small for two
            found = self._screened()
        if len(self.more.X) > len(self.few.X):
            found = self._all_on(self.more, _best_of_each_activation(found), _COMPARE)
        ranked = _distinct(found, len(found))
        if len(self.most.X) > len(self.more.X):
            ranked = self._polished(ranked)
        return [self._candidate(one) for one in ranked]

    def _screened(self) -> list[_Found]:
        found = [self._common_scale(architecture) for architecture in SIMPLE]
        if self.with_relevance and self.few.X.shape[1] > 1:
            found += self._relevances(found)
        return found + self._transferred(max(found, key=lambda one: one.charged))

    def _polished(self, ranked: list[_Found]) -> list[_Found]:
        """The winner on all the rows allowed, and one of another activation where it is close: more rows decide."""
        best, *others = ranked
        unlike = [one for one in others if one.landscape.architecture.activation != best.landscape.architecture.activation]
        rivals = [one for one in unlike[:1] if one.charged > best.charged - _UNDECIDED]
        finalists = self._all_on(self.most, [best, *rivals], _POLISH)
        return sorted(finalists, key=lambda one: -one.charged) + [one for one in others if one not in rivals]

    def _common_scale(self, architecture: Architecture) -> _Found:
        landscape = self.landscape(architecture)
        tried = self.coarse(landscape)
        glances = [self._climb(landscape, start, _GLANCE) for _, start in tried[:2]]
        return self._overlooked(self._onwards(landscape, max(glances, key=lambda climb: climb.score)))

    def coarse(self, landscape: Landscape) -> list[tuple[float, FloatArray]]:
        """Best score and point at every scale of the grid, best first."""
        tried = []
        for scale in _GRID_SCALES:
            starts = [self._start(scale, ridge, 1) for ridge in _GRID_RIDGES]
            tried.append(max(((landscape.score(start), start) for start in starts), key=lambda pair: pair[0]))
        return sorted(tried, key=lambda pair: -pair[0])

    def _relevances(self, shared: list[_Found]) -> list[_Found]:
        """A scale for every feature, from many starts: most climbs stop early, the best go on."""
        d = self.few.X.shape[1]
        first = []
        for common in shared:
            point = common.climb.point
            starts = [np.concatenate([np.full(d, point[0]), point[1:]])]
            starts += [self._start(scale, 1e-2, d) for scale in _RELEVANCE_SCALES]
            first += [_Found(common.landscape, self._climb(common.landscape, start, _FIRST)) for start in starts]
        enough = max(one.charged for one in shared) - _HOPELESS
        longer = [self._onwards(one.landscape, one.climb) for one in _distinct(first, _KEPT) if one.charged > enough]
        longer.sort(key=lambda one: -one.charged)
        return [self._overlooked(one) for one in longer[:1]] + longer[1:]

    def _transferred(self, best: _Found) -> list[_Found]:
        """Other architectures from the best point so far: what is relevant to one network is relevant to another."""
        others = [a for a in (*SIMPLE, *DEEPER) if a != best.landscape.architecture]
        first = [_Found(landscape := self.landscape(a), self._climb(landscape, best.climb.point, _FIRST)) for a in others]
        promising = best.charged - CLOSE
        return [self._onwards(one.landscape, one.climb) if one.charged > promising else one for one in first]

    def _onwards(self, landscape: Landscape, climb: Climb) -> _Found:
        return _Found(landscape, self._climb(landscape, climb.point, _LONGER))

    def _overlooked(self, found: _Found) -> _Found:
        """Look again for structure that a climb may have taken for noise, a collapse above all."""
        again = self._climb(found.landscape, found.faster, _GLANCE)
        return self._onwards(found.landscape, again) if again.score > found.climb.score else found

    def _climb(self, landscape: Landscape, start: FloatArray, evaluations: int) -> Climb:
        climb = landscape.climb(start, evaluations)
        self.step(score=climb.score)
        return climb

    def _all_on(self, rows: Rows, found: list[_Found], evaluations: int) -> list[_Found]:
        """Climbs at the same time, each on one thread: two threads for one matrix wait for each other on a busy machine."""
        return on_all_cores(lambda one: self._on(rows, one, evaluations), found, rows.X.device)

    def _on(self, rows: Rows, found: _Found, evaluations: int) -> _Found:
        """The same architecture from the same point, on other rows."""
        landscape = Landscape(*rows, found.landscape.architecture, self.criterion)
        return _Found(landscape, self._climb(landscape, found.climb.point, evaluations))

    def landscape(self, architecture: Architecture) -> Landscape:
        """Where climbs of an architecture begin."""
        return Landscape(*self.few, architecture, self.criterion)

    def _start(self, scale: float, ridge: float, n_scales: int) -> FloatArray:
        return np.array([math.log(scale / math.sqrt(self.few.X.shape[1]))] * n_scales + [0.0, 0.0, math.log(ridge)])

    def _candidate(self, one: _Found) -> Candidate:
        point, landscape = one.climb.point, one.landscape
        return Candidate(landscape.network(point), landscape.ridge(point) / self.n_rows, one.charged)


def _best_of_each_activation(found: list[_Found]) -> list[_Found]:
    activations = dict.fromkeys(one.landscape.architecture.activation for one in found)
    families = ([one for one in found if one.landscape.architecture.activation == name] for name in activations)
    return [max(family, key=lambda one: one.charged) for family in families]


def _distinct(found: list[_Found], count: int) -> list[_Found]:
    """The best few that are not the same hill of the same architecture."""
    kept: list[_Found] = []
    for one in sorted(found, key=lambda one: -one.charged):
        same = (k for k in kept if k.landscape.architecture == one.landscape.architecture)
        if all(abs(k.charged - one.charged) > _SAME_HILL for k in same):
            kept.append(one)
    return kept[:count]
