"""Finite networks that were trained by gradients: every replicate's, both groups'."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._findings import Finding
from unseed._state import State
from unseed.engines._conditions import conditioning
from unseed.engines._finite import FiniteReplicates
from unseed.engines._points import NewPoints, Probe
from unseed.engines._protocol import Convergence
from unseed.engines._tangent import TangentFit
from unseed.engines._task import between_groups, rows_of
from unseed.networks import NetworkBatch

_NUMBERS_AT_A_TIME = 1 << 26  # hidden activations at new points held at once
_COMPARED_ROWS = 200  # of the tangent kernels before and after training
_FLOAT32_FLOOR = 1e-9  # training leaves a tangent kernel with errors of float32 parameters' size: λ cannot be smaller


@dataclass(frozen=True)
class NetworkReplicates(FiniteReplicates):
    """Trained networks of every replicate and group."""

    batch: NetworkBatch
    starts: Tensor  # (n_replicates, p)
    parameters: Tensor  # (n_replicates, n_groups, p)
    convergence: Convergence

    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """Forward passes, in float64 so that a point's prediction does not depend on its neighbours.

        Shape (n_replicates, n_points, n_groups, n_outputs).
        """
        parameters = self.parameters if replicates is None else self.parameters[list(replicates)]
        n_replicates, n_groups, _ = parameters.shape
        chunks = torch.split(points.inputs, max(1, _NUMBERS_AT_A_TIME // self.batch.numbers_per_row))
        networks = [
            torch.cat([self.exact_batch.outputs(theta[None], chunk[None])[0] for chunk in chunks])
            for theta in parameters.flatten(0, 1).double()
        ]
        outputs = torch.stack(networks)  # (n_replicates · n_groups, n_points, k)
        return outputs.reshape(n_replicates, n_groups, *outputs.shape[1:]).transpose(1, 2)

    def influence(self, points: NewPoints) -> Tensor:
        """Influence values with the tangent kernel of the trained base network and the residuals it really left."""
        tangent, labels = self.full_fit
        (fits,) = self.predict(NewPoints(self.task.X), self.plan.reference)  # (n_rows, n_groups, k)
        return tangent.influence(points.inputs, labels - between_groups(fits))

    def conditions(self, probe: Probe) -> Iterable[Finding]:
        """Accuracy, convergence, and how far finite width is from the theory."""
        yield from conditioning(tangent.factor for tangent in self.tangents)
        yield from self.convergence.conditions()
        yield from self._width()
        if self.convergence.wanted:  # a training stopped on purpose is not the converged one of the linearisation
            yield self._linearity(probe)

    def state(self) -> State:
        """Parameters before and after training, and how it went."""
        return {
            "kind": "network",
            **self.batch.state(),
            "starts": self.starts,
            "parameters": self.parameters,
            **self.convergence.state(),
            "dtype": str(self.parameters.dtype).removeprefix("torch."),
        }

    @property
    def references(self) -> list[tuple[TangentFit, Tensor]]:
        """The base networks that stand for these data, linearised where training ended."""
        rows = rows_of(self.plan, self.task.X.device, self.plan.reference)
        return [(tangent, self.task.difference[own]) for tangent, own in zip(self.tangents, rows, strict=True)]

    @property
    def numbers_per_point(self) -> int:
        """Rows × outputs, for the jackknife (hidden activations are split further inside)."""
        return max(self.task.labels[:, 0].numel() * self.batch.n_outputs, 2 * len(self.starts))

    @cached_property
    def exact_batch(self) -> NetworkBatch:
        """The architecture in float64, whatever it was trained in."""
        return self.batch.in_double()

    @cached_property
    def tangents(self) -> list[TangentFit]:
        """Tangent kernels of the trained base networks of the reference replicates, in float64."""
        return [self._tangent_at(r, self.parameters[r, 0]) for r in self.plan.reference]

    def _tangent_at(self, replicate: int, parameters: Tensor) -> TangentFit:
        """Linearisation of a replicate's network at any parameters."""
        (rows,) = rows_of(self.plan, self.task.X.device, [replicate])
        counts = torch.from_numpy(self.plan.counts[replicate]).to(self.task.X)[rows]
        floor = _FLOAT32_FLOOR if self.parameters.dtype == torch.float32 else 0.0
        regularization = max(self.task.as_ridge().regularization, floor)
        return TangentFit(self.exact_batch, parameters[None].double(), self.task.X[rows], counts, regularization)

    def _width(self) -> Iterable[Finding]:
        """How far training moved the parameters, and the tangent kernel with them."""
        replicate = self.plan.reference[0]
        start, end = self.starts[replicate].double(), self.parameters[replicate, 0].double()
        X = self.tangents[0].X[None, :_COMPARED_ROWS]
        before, after = (self.exact_batch.evaluate(theta[None], X).tangent_kernel() for theta in (start, end))
        wider = "the network is too narrow to stay linear: widen it, or raise regularization"
        yield Finding(
            "change of the tangent kernel in training",
            float(torch.linalg.matrix_norm(after - before)[0] / torch.linalg.matrix_norm(before)[0]),
            0.2,
            wider,
            "The networks are wide enough: training hardly changed how they respond.",
            "The networks are too narrow for the theory: training changed how they respond.",
        )
        yield Finding(
            "distance of the parameters from their start",
            float(torch.linalg.vector_norm(end - start) / torch.linalg.vector_norm(start)),
            0.2,
            wider,
            "The weights stayed near their start, as the theory needs.",
            "The weights moved far from their start, further than the theory allows for.",
        )

    def _linearity(self, probe: Probe) -> Finding:
        """Trained against linearised PNC prediction, in half widths of the interval."""
        replicate = self.plan.reference[0]
        tangent = self._tangent_at(replicate, self.starts[replicate])
        _, labels = self.references[0]
        linear = tangent.predict(probe.points.inputs, tangent.solve(labels[:, None]))[:, 0]
        (outputs,) = self.predict(probe.points, [replicate])
        return Finding(
            "trained against linearised prediction, in half widths",
            probe.in_half_widths(between_groups(outputs) - linear),
            0.5,
            "finite width shows: widen the network or raise regularization",
            "Trained networks agree with their linear approximation.",
            "Trained networks differ visibly from their linear approximation.",
        )
