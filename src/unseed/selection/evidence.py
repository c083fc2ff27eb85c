"""Choosing the network by evidence: how probable the labels are under the network's own Gaussian process.

With A = K/k̄ + ρI, k̄ the mean diagonal of K, and labels z, the logarithm of the marginal likelihood with the amplitude
profiled out is −½[n log(zᵀA⁻¹z/n) + log|A|], up to a constant. It is maximised over input scales (one for all features, or
one each: their relevance), weight and bias scale and ρ, by L-BFGS with gradients through the Cholesky factor, for several
activations and depths. ρk̄ is the ridge λn. A truth is never looked at; nothing is random but the rows kept above `MAX_ROWS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from unseed.kernels.differentiable import ntk_of_scales
from unseed.machine import one_thread
from unseed.networks import MLP
from unseed.random import Streams
from unseed.results import FloatArray

MAX_ROWS = 400
"""Above this many rows, the evidence is that of a random subset of them."""

ARCHITECTURES = (("erf", 1), ("erf", 2), ("relu", 1))
_STARTS = (1.0, 0.2)  # input scale times √d: an ordinary network, and a nearly linear one
_BOUNDS_SCALE, _BOUNDS_BIAS, _BOUNDS_WEIGHT = (-9.0, 4.0), (-4.0, 3.0), (-3.0, 2.0)  # of logarithms
_BOUNDS_RIDGE = (math.log(1e-9), math.log(1e2))
_FAILED = 1e10  # of a point where the kernel matrix cannot be factorised


@dataclass(frozen=True)
class Candidate:
    """A network, its λ and its evidence per row (larger is better), already charged for its relevances."""

    network: MLP
    regularization: float
    score: float


@dataclass(frozen=True)
class Selection:
    """The network chosen, and all that were considered, best first.

    Attributes
    ----------
    candidates : tuple of Candidate
    """

    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The candidate with the largest evidence."""
        return self.candidates[0]

    def __str__(self) -> str:
        lines = ["evidence per row   λ          network"]
        for candidate in self.candidates:
            network = candidate.network
            scale = np.array(network.input_scale or (1.0,))
            relevance = f"scales {scale.min():.2g} to {scale.max():.2g}" if np.ptp(scale) > 0 else f"scale {scale[0]:.2g}"
            lines.append(
                f"{candidate.score:16.3f}   {candidate.regularization:.2e}   "
                f"{network.activation}, depth {network.depth}, {relevance}"
            )
        return "\n".join(lines)


def select_by_evidence(X: Tensor, labels: Tensor, streams: Streams) -> Selection:
    """Maximise the evidence over architectures and scales.

    Relevances start from the best common scale of the best architecture, and are charged ½ log n each (as many as there
    are features but one), so that many features with few rows keep a common scale.

    Parameters
    ----------
    X : Tensor of shape (n_rows, n_features)
    labels : Tensor of shape (n_rows, n_outputs)
        Several outputs share the network; each has its own amplitude.
    streams : Streams
    """
    n_rows = len(X)
    if n_rows > MAX_ROWS:
        rows = torch.from_numpy(np.sort(streams.generator("selection").permutation(n_rows)[:MAX_ROWS])).to(X.device)
        X, labels = X[rows], labels[rows]
    with one_thread():
        candidates = _climb(X, labels, n_rows)
    return Selection(tuple(sorted(candidates, key=lambda candidate: -candidate.score)))


def _climb(X: Tensor, labels: Tensor, n_rows: int) -> list[Candidate]:
    n_features = X.shape[1]
    charge = 0.5 * math.log(len(X)) * (n_features - 1) / len(X)
    candidates, points = [], []
    for activation, depth in ARCHITECTURES:
        criterion = _Criterion(X, labels, activation, depth)
        score, point = max((criterion.maximise(criterion.start(scale)) for scale in _STARTS), key=lambda found: found[0])
        candidates.append(criterion.candidate(point, score, n_rows))
        points.append((score, criterion, point))
    if n_features > 1:
        _, criterion, shared = max(points, key=lambda found: found[0])
        separate = np.concatenate([np.full(n_features, shared[0]), shared[1:]])
        score, point = criterion.maximise(separate)
        candidates.append(criterion.candidate(point, score - charge, n_rows))
    return candidates


@dataclass(frozen=True)
class _Criterion:
    """Evidence of one architecture as a function of (log scales, log bias_scale, log weight_std, log ρ)."""

    X: Tensor
    labels: Tensor
    activation: str
    depth: int

    def start(self, scale: float) -> FloatArray:
        """Common scale, unit biases and weights, a hundredth of noise."""
        return np.array([math.log(scale / math.sqrt(self.X.shape[1])), 0.0, 0.0, math.log(1e-2)])

    def evidence(self, point: Tensor) -> Tensor | None:
        """Evidence per row and output; None where the matrix cannot be factorised."""
        kernel = self._kernel(point)
        n = len(kernel)
        matrix = kernel / kernel.diagonal().mean() + torch.exp(point[-1]) * torch.eye(
            n, dtype=kernel.dtype, device=kernel.device
        )
        factor, failed = torch.linalg.cholesky_ex(matrix)
        if int(failed):
            return None
        fit = (self.labels * torch.cholesky_solve(self.labels, factor)).sum(0) / n  # (n_outputs,)
        smallest = torch.finfo(fit.dtype).tiny
        score: Tensor = -0.5 * fit.clamp_min(smallest).log().mean() - factor.diagonal().log().mean()
        return score

    def maximise(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Climb from a point; the evidence reached, and where."""

        def negative(values: FloatArray) -> tuple[float, FloatArray]:
            leaf = torch.tensor(values, device=self.X.device, requires_grad=True)
            with torch.enable_grad():
                score = self.evidence(leaf)
            if score is None or not bool(torch.isfinite(score)):
                return _FAILED, np.zeros_like(values)
            (slope,) = torch.autograd.grad(-score, leaf)
            slopes = slope.cpu().numpy()
            return (-float(score.detach()), slopes) if np.isfinite(slopes).all() else (_FAILED, np.zeros_like(values))

        bounds = [_BOUNDS_SCALE] * (len(point) - 3) + [_BOUNDS_BIAS, _BOUNDS_WEIGHT, _BOUNDS_RIDGE]
        found = minimize(negative, point, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60, "maxfun": 120})
        return -float(found.fun), np.asarray(found.x)

    def candidate(self, point: FloatArray, score: float, n_rows: int) -> Candidate:
        """The point as an ordinary network and λ."""
        scales = np.exp(point[:-3])
        network = MLP(
            depth=self.depth,
            activation=self.activation,
            weight_std=float(np.exp(point[-2])),
            bias_scale=float(np.exp(point[-3])),
            input_scale=tuple(np.broadcast_to(scales, self.X.shape[1]).tolist()),
        )
        with torch.no_grad():
            mean_diagonal = float(self._kernel(torch.tensor(point, device=self.X.device)).diagonal().mean())
        return Candidate(network, float(np.exp(point[-1])) * mean_diagonal / n_rows, score)

    def _kernel(self, point: Tensor) -> Tensor:
        return ntk_of_scales(
            self.X, torch.exp(point[:-3]), torch.exp(point[-2]), torch.exp(point[-3]), self.activation, self.depth
        )
