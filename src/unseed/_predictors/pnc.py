"""The procedural-noise-correcting predictor: base network minus auxiliary network plus s̄ (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from unseed._predictors.scaled import ScaledNetworks
from unseed._residuals import Misfit, NoiseModel
from unseed._results import FloatArray, KnownLaw
from unseed.engines import KnowsOtherSeeds, KnowsPosterior, Trained
from unseed.errors import NotAvailableError
from unseed.networks import InitialMean


@dataclass(frozen=True)
class CheckedRows:
    """Training rows whose leave-one-out errors are looked at, in the user's units.

    Attributes
    ----------
    indices : array of shape (m,)
    X : array of shape (m, ...)
    y : array of shape (m, n_outputs)
    """

    indices: npt.NDArray[np.int64]
    X: FloatArray
    y: FloatArray


@dataclass(frozen=True)
class LeftOutErrors:
    """Leave-one-out errors of the checked rows and the posterior variance of the predictions, in the user's units."""

    errors: FloatArray  # (m, n_outputs)
    variance: FloatArray  # (m, n_outputs)


@dataclass(frozen=True)
class PNCReplicates(ScaledNetworks):
    """PNC predictions of every replicate of a plan, in the user's units.

    The engine has trained, for every replicate, a base network on y (Algorithm 1, step 1) and an auxiliary network on s̄
    from the same start (step 2).
    """

    initial_mean: InitialMean
    checked: CheckedRows
    converges: bool
    noise_kind: str = "constant"
    rival: Trained | None = None

    def predict(self, X: FloatArray) -> FloatArray:
        """Base − auxiliary + s̄. Shape (n_replicates, n_points, n_outputs)."""
        inputs = self.inputs(X)
        base, auxiliary = self.trained.predict(inputs).unbind(2)
        return self.in_units(base - auxiliary + self.initial_mean(X, inputs))

    @property
    def has_posterior(self) -> bool:
        """Whether there is a converged network on all rows, with its closed-form posterior."""
        return isinstance(self.trained, KnowsPosterior) and len(self.plan.reference) == 1 and self.converges

    def posterior_variance(self, X: FloatArray, minus: FloatArray | None = None) -> FloatArray:
        """At points, or of f(x) − f(x') for points ``X`` and ``minus``. Shape (n_points, n_outputs)."""
        other = None if minus is None else self.inputs(minus)
        return self._squared_units(self._posterior.posterior_variance(self.inputs(X), other))

    def posterior_covariance(self, X: FloatArray) -> FloatArray:
        """Between points, output by output. Shape (n_outputs, n_points, n_points)."""
        covariance = self._posterior.posterior_covariance(self.inputs(X)).cpu().numpy()
        return np.asarray(covariance * self.scaling.y_scale[:, None, None] ** 2)

    @cached_property
    def left_out(self) -> LeftOutErrors:
        """What the network trained on all other rows makes of each checked row."""
        rows = torch.from_numpy(self.checked.indices).to(self.device)
        found = self._posterior.leave_out(rows)
        errors = np.asarray(found.errors.cpu().numpy() * self.scaling.y_scale)
        return LeftOutErrors(errors, self._squared_units(found.variance))

    @cached_property
    def misfit(self) -> Misfit:
        """Structure that the network has left in its errors."""
        return Misfit.find(self.features(self.checked.X), self.checked.y, self.left_out.errors)

    def misfit_variance(self, X: FloatArray) -> FloatArray:
        """Square of that structure at points. Shape (n_points, n_outputs)."""
        return self.misfit(self.features(X))

    def features(self, X: FloatArray) -> FloatArray:
        """Features as the network sees them, those of a row in one line. Shape (n_points, d)."""
        return self.scaling.to_network(X).reshape(len(X), -1)

    def noise_at(self, X: FloatArray) -> FloatArray:
        """Noise variance. Shape (n_points, n_outputs)."""
        return self.noise(self.features(X))

    def rival_variance(self, X: FloatArray) -> FloatArray:
        """Squared distance to a network that the data like nearly as well. Shape (n_points, n_outputs)."""
        return np.asarray(self.distance_to_rival(X) ** 2)

    def distance_to_rival(self, X: FloatArray) -> FloatArray:
        """Prediction of the rival less our own, zero where there is none. Shape (n_points, n_outputs)."""
        if self.rival is None:
            return np.zeros((len(X), len(self.scaling.y_scale)))
        ours, inputs = self.predict(X)[0], self.inputs(X)
        base, auxiliary = self.rival.predict(inputs)[0].unbind(1)
        return np.asarray(self.in_units(base - auxiliary + self.initial_mean(X, inputs)) - ours)

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

    @property
    def _posterior(self) -> KnowsPosterior:
        if not isinstance(self.trained, KnowsPosterior):
            raise NotAvailableError("a posterior needs a converged network on all rows")
        return self.trained

    def _squared_units(self, variance: torch.Tensor) -> FloatArray:
        return np.asarray(variance.cpu().numpy() * self.scaling.y_scale**2)

    def procedural_variance(self, X: FloatArray) -> FloatArray:
        """Variance over seeds of a single network, which PNC takes out. Shape (n_points, n_outputs).

        In closed form for infinitely wide networks. Otherwise the mean square of auxiliary − s̄, the procedural noise
        itself, over the replicates: a rough figure, from as many draws as there are replicates.
        """
        inputs = self.inputs(X)
        if isinstance(self.trained, KnowsOtherSeeds):
            variance = self.trained.procedural_variance(inputs)[:, None].cpu().numpy()
        else:
            noise = self.trained.predict(inputs)[:, :, 1] - self.initial_mean(X, inputs)
            variance = noise.square().mean(0).cpu().numpy()
        return np.asarray(variance * self.scaling.y_scale**2)

    def draw_networks(self, X: FloatArray, n_networks: int, members: int, generator: np.random.Generator) -> FloatArray:
        """Predictions of single networks (or averages of several) of other seeds. Shape (n_networks, n_points, k).

        A trained network of infinite width is s(x) + K(x, X) A⁻¹ (y − s(X)) with s drawn from the NNGP. Around the PNC
        prediction it is Gaussian with the procedural covariance, so drawing from that is drawing the initial function on
        training and new points and training it, at the cost of the new points alone.
        """
        if not isinstance(self.trained, KnowsOtherSeeds):
            raise NotAvailableError(
                "sample_networks draws from the closed form of engine='kernel'; with another engine train a "
                "DeepEnsembleRegressor, whose members are such networks"
            )
        centre = self.predict(X)[list(self.plan.reference)].mean(axis=0)
        root = _square_root(self.trained.procedural_covariance(self.inputs(X)))
        noise = torch.from_numpy(generator.standard_normal((n_networks, *centre.shape))).to(root)
        return np.asarray(centre + (root @ noise).cpu().numpy() / np.sqrt(members) * self.scaling.y_scale)


def _square_root(covariance: torch.Tensor) -> torch.Tensor:
    """R with R Rᵀ = covariance up to a share of 1e-10 of its diagonal; a tenth of the cost of its eigenvectors."""
    jitter = 1e-10 * covariance.diagonal().mean().clamp_min(torch.finfo(covariance.dtype).tiny)
    root: torch.Tensor
    root, failed = torch.linalg.cholesky_ex(covariance + jitter * torch.eye(len(covariance)).to(covariance))
    if not int(failed):
        return root
    eigenvalues, vectors = torch.linalg.eigh(covariance)
    root = vectors * eigenvalues.clamp_min(0.0).sqrt()
    return root


@dataclass(frozen=True)
class PosteriorLaw:
    """Covariance of the errors at some points, as the posterior has it; a pickle holds the figures, not the model."""

    replicates: PNCReplicates
    X: FloatArray

    def covariance(self) -> FloatArray:
        """Shape (n_outputs, n_points, n_points)."""
        return self.replicates.posterior_covariance(self.X)

    def __reduce__(self) -> tuple[type[KnownLaw], tuple[FloatArray]]:
        return KnownLaw, (self.covariance(),)
