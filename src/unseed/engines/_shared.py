"""What engines of ours share: how they answer for the replicates that stand for these data, and formulas."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from unseed._findings import Finding
from unseed._resampling import Plan
from unseed._solvers import Converged, GradientDescent, GradientFlow
from unseed.engines._protocol import CONVERGED, NOTHING, Capability, Engine, Trained
from unseed.engines._task import Probe, Task, rows_of
from unseed.errors import InvalidInputError


class Ridge(Protocol):
    """What replicates are: ridge regressions, or linearised as such. Those that were solved have a ``condition``, too."""

    def noise_residual(self, labels: Tensor) -> tuple[Tensor, float]:
        """Residuals and a trace, which estimate the noise variance (see `WeightedRidge`)."""
        ...


NEEDS_ALL_ROWS = "a posterior and influence values need a network trained to convergence on all rows"

R = TypeVar("R", bound=Ridge)


@dataclass(frozen=True)
class OwnReplicates(Trained, Generic[R]):
    """Networks of every replicate, by an engine of ours."""

    engine: Engine
    task: Task
    plan: Plan

    @abstractmethod
    def ridges(self) -> Sequence[R]:
        """Of the replicates that stand for these data."""

    @cached_property
    def references(self) -> list[tuple[R, Tensor]]:
        """Each of them with the labels' difference at its rows (n_rows_r, n_outputs)."""
        rows = rows_of(self.plan, self.task.X.device, self.plan.reference)
        return [(ridge, self.task.difference[own]) for ridge, own in zip(self.ridges(), rows, strict=True)]

    @property
    def full_fit(self) -> tuple[R, Tensor]:
        """The one of all rows, and its labels."""
        fit, *batches = self.references
        if batches:
            raise InvalidInputError(NEEDS_ALL_ROWS)
        return fit

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The engine's; formulas for converged networks need one of all rows."""
        return self.engine.capabilities - (CONVERGED if len(self.plan.reference) > 1 else NOTHING)

    def noise_variance(self) -> Tensor:
        """Residual sum of squares over its trace, of all rows together (also where training stopped early)."""
        residuals, traces = zip(*(ridge.noise_residual(labels) for ridge, labels in self.references), strict=True)
        total = torch.cat(residuals).square().sum(0)
        variance: Tensor = total / max(sum(traces), torch.finfo(total.dtype).tiny)
        return variance

    def conditions(self, probe: Probe) -> Iterable[Finding]:
        """How accurately the systems behind the fits could be solved; nothing where training was stopped and none were."""
        found = [ridge.condition for ridge, _ in self.references if hasattr(ridge, "condition")]
        if found:
            yield Finding(
                "condition number of the kernel matrix",
                max(found),
                1e12,
                "raise regularization or merge duplicate rows",
                "The arithmetic is accurate.",
                "Rounding errors may show: the equations behind the fit are nearly singular.",
            )


def check_training(engine: str, training: object) -> None:
    """Refuse what is not a way of training in closed form."""
    if not isinstance(training, (Converged, GradientFlow, GradientDescent)):
        raise InvalidInputError(
            f"{engine}(training={training!r}): use Converged(), GradientFlow(time=...) or GradientDescent(steps=..., rate=...)"
        )


def influence_values(residual: Tensor, weights: Tensor) -> Tensor:
    """IF_i(x) = n r_i c_i(x) − Σ_j r_j c_j(x): the paper's theorem on the jackknife with every 1/λ cancelled.

    Of residuals (n_rows, n_outputs) and c(x), how far each label moves each prediction: weights of shape
    (n_rows, n_outputs, n_points, n_outputs). Shape (n_rows, n_points, n_outputs).
    """
    effect = torch.einsum("ij,ijmk->imk", residual, weights)
    return len(residual) * effect - effect.sum(0)
