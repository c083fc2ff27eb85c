"""Several classes: the logits of all are one fit, and every class is asked about as log-odds against the rest.

η_c = f_c − log Σ_{j≠c} exp f_j is the logarithm of p_c/(1 − p_c), whatever is added to all logits. Variances and influences are
carried over to it to first order, ∂η_c/∂f_c = 1 and ∂η_c/∂f_j = −p_j/(1 − p_c): smooth in x, the logistic ones for two classes,
and what is mapped back stays between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._solvers.curved import JointCurvature
from unseed.engines._bent import BentReplicates, centred_influence
from unseed.engines._protocol import LeftOut
from unseed.engines._task import NewPoints


@dataclass(frozen=True)
class ClassReplicates(BentReplicates):
    """Networks with a logit for every class; outputs are log-odds of each against the rest."""

    @cached_property
    def ridge(self) -> JointCurvature:
        """What the loss is near the fit."""
        found = self.full.curvature(self.values)
        assert isinstance(found, JointCurvature)
        return found

    @property
    def worst_condition(self) -> float:
        """The worst class's."""
        return self.ridge.condition

    @property
    def amplitude(self) -> Tensor:
        """1/2λN. Shape (n_classes,)."""
        return self.dual.new_full((self.dual.shape[3],), 1 / (2 * self.full.penalty))

    @cached_property
    def start(self) -> Tensor:
        """Logits of the classes' shares, which the fits are added to. Shape (n_classes,)."""
        return self.task.labels[0, 1]

    def logits(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """Logits f. Shape (n_replicates, n_points, n_classes)."""
        return super().predict(points, replicates)[:, :, 0] + self.start

    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """Log-odds against the rest, and nothing for the auxiliary network."""
        odds = against_the_rest(self.logits(points, replicates))
        return torch.stack([odds, torch.zeros_like(odds)], dim=2)

    @property
    def numbers_per_point(self) -> int:
        """As many as for one class, for each."""
        return super().numbers_per_point * 3 * self.dual.shape[3]

    def whiten(self, cross: Tensor) -> Tensor:
        """Class by class. Shape (n_classes, n, n_points)."""
        return torch.stack([block.whiten(self.full.share * cross) for block in self.ridge.blocks])

    @cached_property
    def covariance_at_rows(self) -> Tensor:
        """Posterior covariance of the logits of each row, for an amplitude of one. Shape (n, n_classes, n_classes)."""
        kernel = self.full.share * self.full.kernel
        shared = self.ridge.shared(kernel)
        own = torch.stack([kernel.diagonal() - (kernel * (b.inverse @ kernel)).sum(0) for b in self.ridge.blocks], dim=1)
        return torch.diag_embed(own) + torch.einsum("cnm,dnm->mcd", shared, shared)

    @property
    def used(self) -> float:
        """The trace of S C."""
        return float((self._steepness_at_rows * self.covariance_at_rows).sum())

    @property
    def _steepness_at_rows(self) -> Tensor:
        p = self.means
        return self.ridge.steepness[:, None, None] * (torch.diag_embed(p) - p[:, :, None] * p[:, None, :])

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """Of the log-odds. Shape (n_points, n_classes)."""
        slopes = self._slopes(points)  # (m, odds, logits)
        own, shared = self._white(points), self._shared(points)
        prior = self.full.share * self.profile(points).diagonal.ntk
        single = (prior[:, None] - own.square().sum(1).T).clamp_min(0.0)  # (m, c)
        joint = torch.einsum("moc,cnm->onm", slopes, shared).square().sum(1).T + self._unexplained(points).square().sum(2)
        return (torch.einsum("moc,mc->mo", slopes.square(), single) + joint) * self.amplitude

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """Between points, log-odds by log-odds. Shape (n_classes, n_points, n_points)."""
        slopes, own, shared = self._slopes(points), self._white(points), self._shared(points)
        single = self.full.share * self.kernel.ntk_gram(self.profile(points)) - own.mT @ own  # (c, m, m)
        common = torch.einsum("moc,cnm->onm", slopes, shared)
        left = self._unexplained(points).transpose(0, 1)
        joint = torch.einsum("moc,poc,cmp->omp", slopes, slopes, single) + common.mT @ common + left @ left.mT
        return joint * self.amplitude[:, None, None]

    def influence(self, points: NewPoints) -> Tensor:
        """On the log-odds. Shape (n_rows, n_points, n_classes)."""
        pull, share, kernel = self.full.pull(self.values), self.full.share, self.full.kernel
        cross, slopes = share * self.cross(points), self._slopes(points)
        effect = cross.new_zeros(*cross.shape, pull.shape[1])
        solve = torch.linalg.solve_triangular
        shared = self.ridge.shared(cross)
        back = [solve(self.ridge.total.mT, one, upper=True) for one in shared]  # (Σ E)⁻¹ E_c k
        for d, (block, own) in enumerate(zip(self.ridge.blocks, pull.unbind(1), strict=True)):
            for c, common in enumerate(back):  # covariance of logit d at the rows and logit c at the points
                joint = share * (kernel @ (block.inverse @ common))
                if c == d:
                    joint = joint + cross - share * (kernel @ (block.inverse @ cross))
                effect[:, :, c] += own[:, None] * joint
        return centred_influence(self.full, torch.einsum("nmc,moc->nmo", effect, slopes))

    def leave_out(self, rows: Tensor) -> LeftOut:
        """One more Newton step without the row: f_i − C_i (I − S_i C_i)⁻¹ α_i, class by class together."""
        covariance, steepness = self.covariance_at_rows[rows], self._steepness_at_rows[rows]
        eye = torch.eye(covariance.shape[1]).to(covariance)
        # C (I − S C)⁻¹ is symmetric: (I − C S)⁻¹ C
        grown = torch.linalg.solve(eye - covariance @ steepness, covariance)
        pull = self.full.pull(self.values)[rows]
        left_out = self.outputs[rows] - (grown @ pull[:, :, None])[:, :, 0]
        slopes = slopes_of(left_out)
        explained, root = self._constants
        followed = torch.einsum("nm,ncd->mcd", self.full.share * self.full.kernel[:, rows], explained)
        left = (eye - followed) @ root
        covariance = covariance + left @ left.mT
        grown = torch.linalg.solve(eye - covariance @ steepness, covariance)
        variance = torch.einsum("moc,mcd,mod->mo", slopes, grown, slopes) * self.amplitude
        return LeftOut(rows, self.full.labels[rows] - torch.softmax(left_out, -1), variance.clamp_min(0.0))

    def _shared(self, points: NewPoints) -> Tensor:
        """What the classes know in common. Shape (n_classes, n, n_points)."""
        return points.once(self, "shared", lambda: self.ridge.shared(self.full.share * self.cross(points)))

    @cached_property
    def _constants(self) -> tuple[Tensor, Tensor]:
        """A⁻¹ times a constant for each logit, (n, n_classes, n_classes), and a root of the inverse of what that leaves."""
        k = self.dual.shape[3]
        eye = torch.eye(k).to(self.dual)
        found = torch.stack([self.ridge.solve(eye[c].expand(len(self.inputs), k)) for c in range(k)], dim=2)
        values, vectors = torch.linalg.eigh(found.sum(0))
        kept = values > 1e-10 * values[-1]  # the same for all classes is no matter
        return found, vectors[:, kept] / values[kept].sqrt()

    def _unexplained(self, points: NewPoints) -> Tensor:
        """Of constants, what the networks do not follow, as log-odds. Shape (n_points, n_classes, n_classes − 1)."""
        explained, root = self._constants
        followed = torch.einsum("nm,ncd->mcd", self.full.share * self.cross(points), explained)
        return self._slopes(points) @ (torch.eye(root.shape[0]).to(root) - followed) @ root

    def _slopes(self, points: NewPoints) -> Tensor:
        reference = list(self.plan.reference)
        return points.once(self, "slopes", lambda: slopes_of(self.logits(points, reference)[0]))


def against_the_rest(logits: Tensor) -> Tensor:
    """Log-odds of every class against all others (..., n_classes).

    Examples
    --------
    >>> against_the_rest(torch.tensor([0.0, 1.0]))
    tensor([-1.,  1.])
    """
    k = logits.shape[-1]
    others = (
        logits[..., None, :].expand(*logits.shape, k).masked_fill(torch.eye(k, dtype=torch.bool).to(logits.device), -torch.inf)
    )
    return logits - others.logsumexp(-1)


def slopes_of(logits: Tensor) -> Tensor:
    """∂η/∂f of logits (m, k). Shape (m, k, k): odds, then logits."""
    k = logits.shape[-1]
    own = torch.eye(k, dtype=torch.bool).to(logits.device)
    others = logits[..., None, :].expand(*logits.shape, k).masked_fill(own, -torch.inf)
    return torch.eye(k).to(logits) - torch.softmax(others, -1)
