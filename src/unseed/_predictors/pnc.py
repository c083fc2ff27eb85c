"""The procedural-noise-correcting predictor: base network minus auxiliary network plus s̄ (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unseed._law import KnownLaw
from unseed._predictors.checked import CheckedRows, LeftOutErrors
from unseed._predictors.scaled import Query, ScaledNetworks
from unseed._residuals import Misfit, NoiseModel
from unseed._results import FloatArray
from unseed._state import State
from unseed.engines import NewPoints, Trained
from unseed.errors import NotAvailableError
from unseed.networks import InitialMean

_ENOUGH_EQUAL = 19
"""Labels that are all the same, from where on another one is so, too, with a chance of 0.95."""


@dataclass(frozen=True)
class PNCReplicates(ScaledNetworks):
    """PNC predictors of every replicate of a plan.

    The engine has trained, for every replicate, a base network on y (Algorithm 1, step 1) and an auxiliary network on s̄
    from the same start (step 2).
    """

    initial_mean: InitialMean
    checked: CheckedRows
    noise_kind: str = "constant"
    rival: Trained | None = None
    is_centred: bool = False
    """Whether the labels' mean was taken off them, which costs a degree of freedom."""

    def at(self, X: FloatArray, *, is_shared: bool = False) -> PNCQuery:
        """New points to be asked about; several questions share what is made for them."""
        return PNCQuery(self, X, is_shared)

    def predict(self, X: FloatArray) -> FloatArray:
        """Predictions of every replicate. Shape (n_replicates, n_points, n_outputs)."""
        return self.at(X).predict(X)

    @property
    def has_posterior(self) -> bool:
        """Whether there is a converged network on all rows, with its closed-form posterior."""
        return "posterior" in self.trained.capabilities

    @property
    def handling(self) -> str:
        """How the rows were handled, in words."""
        return self.trained.handled(self.plan.n_rows)

    @property
    def correction(self) -> float:
        """Of variances that were averaged over n rows, where n − 1 of them are free."""
        n = float(self.sizes[list(self.plan.reference)].sum())
        return n / max(n - 1, 1.0) if self.is_centred else 1.0

    @cached_property
    def noise_variance(self) -> FloatArray:
        """Variance of the observations around the function. Shape (n_outputs,)."""
        return super().noise_variance * self.correction

    @cached_property
    def left_out(self) -> LeftOutErrors:
        """What the network trained on all other rows makes of each checked row."""
        found = self.trained.leave_out(torch.from_numpy(self.checked.indices).to(self.device))
        variance = self.scaling.from_variances(found.variance) * self.correction
        return LeftOutErrors(self.scaling.from_differences(found.errors), variance)

    @cached_property
    def is_silent(self) -> npt.NDArray[np.bool_]:
        """Outputs whose labels are all the same, and too few to promise the same of the next. Shape (n_outputs,).

        Of exchangeable labels the next is like all n before it with a chance of n/(n + 1) at least.
        """
        return np.asarray((self.left_out.errors == 0).all(axis=0) & (len(self.checked.y) < _ENOUGH_EQUAL))

    @cached_property
    def misfit(self) -> Misfit:
        """Structure that the network has left in its errors."""
        return Misfit.find(self.features(self.checked.X), self.checked.y, self.left_out.errors)

    @cached_property
    def noise(self) -> NoiseModel:
        """Variance of observations around the function, over x where the errors speak for that."""
        if not self.has_posterior:
            return NoiseModel.constant(self.noise_variance)
        left_out = self.left_out
        return NoiseModel.fit(
            self.features(self.checked.X), left_out.errors, left_out.variance, self.noise_variance, self.noise_kind
        )

    @cached_property
    def scores(self) -> FloatArray:
        """Leave-one-out errors over what the model expects of them, sorted. Shape (m, n_outputs)."""
        expected = np.sqrt(self.left_out.variance + self.noise_at(self.checked.X))
        return np.sort(np.abs(self.left_out.errors) / np.maximum(expected, np.finfo(np.float64).tiny), axis=0)

    def noise_at(self, X: FloatArray) -> FloatArray:
        """Noise variance. Shape (n_points, n_outputs)."""
        return self.noise(self.features(X))

    def features(self, X: FloatArray) -> FloatArray:
        """Features as the network sees them, those of a row in one line. Shape (n_points, d)."""
        return self.scaling.to_network(X).reshape(len(X), -1)

    def draw_networks(self, X: FloatArray, n_networks: int, members: int, generator: np.random.Generator) -> FloatArray:
        """Predictions of single networks (or averages of several) of other seeds. Shape (n_networks, n_points, k).

        A trained network of infinite width is s(x) + K(x, X) A⁻¹ (y − s(X)) with s drawn from the NNGP. Around the PNC
        prediction it is Gaussian with the procedural covariance, so drawing from that is drawing the initial function on
        training and new points and training it, at the cost of the new points alone.
        """
        if "seeds" not in self.trained.capabilities:
            raise NotAvailableError(
                "sample_networks draws from the closed form of engine='kernel'; with another engine train a "
                "DeepEnsembleRegressor, whose members are such networks"
            )
        query = self.at(X, is_shared=True)
        centre, root = query.centre(), _square_root(self.trained.procedural_covariance(query.points))
        noise = torch.from_numpy(generator.standard_normal((n_networks, *centre.shape))).to(root)
        return np.asarray(centre + self.scaling.from_differences(root @ noise) / np.sqrt(members))

    def state(self) -> State:
        """Everything but the rows."""
        return {
            **super().state(),
            "initial_mean": self.initial_mean.state(),
            "checked": self.checked.state(),
            "noise_kind": self.noise_kind,
            "is_centred": bool(self.is_centred),
            "has_rival": self.rival is not None,
            **({} if self.rival is None else {"rival": self.rival.state()}),
        }


class PNCQuery(Query[PNCReplicates]):
    """What PNC predictors say about f(x)."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Base − auxiliary + s̄. Shape (n_replicates, n_points, n_outputs)."""
        return self.at(X)._predictions

    def centre(self) -> FloatArray:
        """Mean over the replicates that stand for these data: all that a prediction without interval needs."""
        return np.asarray(self._corrected(self.networks.trained, self.networks.plan.reference).mean(axis=0))

    def influence(self, X: FloatArray) -> FloatArray:
        """Influence of every row on the full-data prediction. Shape (n_rows, n_points, n_outputs)."""
        return self.networks.scaling.from_differences(self.networks.trained.influence(self.at(X).points))

    def posterior_variance(self, X: FloatArray, minus: PNCQuery | None = None) -> FloatArray:
        """At points, or of f(x) − f(x') for the points of another query. Shape (n_points, n_outputs)."""
        points, other, networks = self.at(X).points, None if minus is None else minus.points, self.networks
        variance = networks.trained.posterior_variance(points, other)
        if networks.is_centred:
            variance = (variance + networks.trained.mean_variance(points, other)) * networks.correction
        return np.asarray(networks.scaling.from_variances(variance) + np.where(networks.is_silent, np.inf, 0.0))

    def missed_variance(self, X: FloatArray) -> FloatArray | None:
        """The part of the posterior variance that is there for landmarks being few; None where all rows are landmarks."""
        trained = self.networks.trained
        if "landmarks" not in trained.capabilities:
            return None
        return self.networks.scaling.from_variances(trained.missed_variance(self.at(X).points))

    def misfit_variance(self, X: FloatArray) -> FloatArray:
        """Square of the structure that the network has left in its errors. Shape (n_points, n_outputs)."""
        return self.networks.misfit(self.networks.features(X))

    def rival_variance(self, X: FloatArray) -> FloatArray:
        """Squared distance to a network that the data like nearly as well. Shape (n_points, n_outputs)."""
        return np.asarray(self.at(X).distance_to_rival() ** 2)

    def distance_to_rival(self) -> FloatArray:
        """Prediction of the rival less our own, zero where there is none. Shape (n_points, n_outputs)."""
        rival = self.networks.rival
        if rival is None:
            return np.zeros((len(self.X), self.networks.scaling.n_outputs))
        return np.asarray(self._corrected(rival)[0] - self._predictions[0])

    def noise_variance(self) -> FloatArray:
        """Of a new observation. Shape (n_points, n_outputs)."""
        return self.networks.noise_at(self.X)

    def procedural_variance(self) -> FloatArray:
        """Variance over seeds of a single network, which PNC takes out. Shape (n_points, n_outputs).

        In closed form for infinitely wide networks. Otherwise the mean square of auxiliary − s̄, the procedural noise
        itself, over the replicates: a rough figure, from as many draws as there are replicates.
        """
        trained = self.networks.trained
        if "seeds" in trained.capabilities:
            variance = trained.procedural_variance(self.points)[:, None]
        else:
            variance = (self._outputs[:, :, 1] - self._mean).square().mean(0)
        return self.networks.scaling.from_variances(variance)

    @cached_property
    def _mean(self) -> Tensor:
        """s̄ at the points."""
        return self.networks.initial_mean(self.X, self.points.inputs)

    @cached_property
    def _outputs(self) -> Tensor:
        return self.networks.trained.predict(self.points)

    @cached_property
    def _predictions(self) -> FloatArray:
        return self._in_units(self._outputs)

    def _corrected(self, trained: Trained, replicates: Sequence[int] | None = None) -> FloatArray:
        """PNC predictions of networks that nobody else will ask about these points."""
        return self._in_units(trained.predict(NewPoints(self.points.inputs), replicates))

    def _in_units(self, outputs: Tensor) -> FloatArray:
        base, auxiliary = outputs.unbind(2)
        return self.networks.scaling.from_labels(base - auxiliary + self._mean)


class ContrastQuery(Query[PNCReplicates]):
    """What PNC predictors say about f(x) − f(x'), pairs of points side by side: X of shape (n_points, 2, ...)."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Shape (n_replicates, n_points, n_outputs)."""
        left, right = self.at(X)._sides
        return left.predict(left.X) - right.predict(right.X)

    def influence(self, X: FloatArray) -> FloatArray:
        """Shape (n_rows, n_points, n_outputs)."""
        left, right = self.at(X)._sides
        return left.influence(left.X) - right.influence(right.X)

    def posterior_variance(self, X: FloatArray) -> FloatArray:
        """Shape (n_points, n_outputs)."""
        left, right = self.at(X)._sides
        return left.posterior_variance(left.X, minus=right)

    def missed_variance(self, X: FloatArray) -> FloatArray | None:
        """Not told apart from the rest of the posterior."""
        return None

    def misfit_variance(self, X: FloatArray) -> FloatArray:
        """Of the difference that the structure makes. Shape (n_points, n_outputs)."""
        left, right = (self.networks.features(X[:, side]) for side in (0, 1))
        return self.networks.misfit.between(left, right)

    def rival_variance(self, X: FloatArray) -> FloatArray:
        """Shape (n_points, n_outputs)."""
        left, right = self.at(X)._sides
        return np.asarray((left.distance_to_rival() - right.distance_to_rival()) ** 2)

    def noise_variance(self) -> FloatArray:
        """Of the difference of two new observations. Shape (n_points, n_outputs)."""
        left, right = self._sides
        return np.asarray(left.noise_variance() + right.noise_variance())

    @cached_property
    def _sides(self) -> tuple[PNCQuery, PNCQuery]:
        left, right = (self.networks.at(self.X[:, side], is_shared=self.is_shared) for side in (0, 1))
        return left, right


@dataclass(frozen=True)
class PosteriorLaw:
    """Covariance of the errors at some points, as the posterior has it; a pickle holds the figures, not the model."""

    networks: PNCReplicates
    X: FloatArray

    def covariance(self) -> FloatArray:
        """Shape (n_outputs, n_points, n_points)."""
        joint = self.networks.trained.posterior_covariance(self.networks.at(self.X, is_shared=True).points)
        joint = joint * self.networks.correction
        return self.networks.scaling.from_variances(joint.permute(1, 2, 0)).transpose(2, 0, 1)

    def __reduce__(self) -> tuple[type[KnownLaw], tuple[FloatArray]]:
        return KnownLaw, (self.covariance(),)


def _square_root(covariance: Tensor) -> Tensor:
    """R with R Rᵀ = covariance up to a share of 1e-10 of its diagonal; a tenth of the cost of its eigenvectors."""
    jitter = 1e-10 * covariance.diagonal().mean().clamp_min(torch.finfo(covariance.dtype).tiny)
    root: Tensor
    root, failed = torch.linalg.cholesky_ex(covariance + jitter * torch.eye(len(covariance)).to(covariance))
    if not int(failed):
        return root
    eigenvalues, vectors = torch.linalg.eigh(covariance)
    root = vectors * eigenvalues.clamp_min(0.0).sqrt()
    return root
