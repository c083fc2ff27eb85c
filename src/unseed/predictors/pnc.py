"""The procedural-noise-correcting predictor: base network minus auxiliary network plus s̄ (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseed.engines import KnowsOtherSeeds
from unseed.errors import NotAvailableError
from unseed.networks import InitialMean
from unseed.predictors.scaled import ScaledNetworks
from unseed.results import FloatArray


@dataclass(frozen=True)
class PNCReplicates(ScaledNetworks):
    """PNC predictions of every replicate of a plan, in the user's units.

    The engine has trained, for every replicate, a base network on y (Algorithm 1, step 1) and an auxiliary network on s̄
    from the same start (step 2).
    """

    initial_mean: InitialMean

    def predict(self, X: FloatArray) -> FloatArray:
        """Base − auxiliary + s̄. Shape (n_replicates, n_points, n_outputs)."""
        inputs = self.inputs(X)
        base, auxiliary = self.trained.predict(inputs).unbind(2)
        return self.in_units(base - auxiliary + self.initial_mean(X, inputs))

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
        covariance = self.trained.procedural_covariance(self.inputs(X)).cpu().numpy()
        eigenvalues, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.clip(eigenvalues, 0.0, None) / members)
        noise = generator.standard_normal((n_networks, *centre.shape))
        return np.asarray(centre + root @ noise * self.scaling.y_scale)
