"""`PNCRegressor`: plan, engine, predictor and interval method wired together behind scikit-learn's contract."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from unseed.engines import Engine, KernelEngine, Task
from unseed.errors import InvalidInputError, NotAvailableError
from unseed.frames import index_of, names_of, to_pandas
from unseed.intervals import IntervalMethod, resolve_interval
from unseed.machine import resolve_device
from unseed.networks import MLP, InitialMean, MonteCarloMean, resolve_initial_mean
from unseed.predictors import draw_networks, fit_pnc
from unseed.random import RandomState, Streams
from unseed.results import Components, Estimate, FloatArray, Prediction, check_level
from unseed.scaling import Scaling
from unseed.selection import choose_regularization

_NUMBERS_AT_A_TIME = 1 << 23  # rows × new points × outputs handled at once: 64 MB per array


class PNCRegressor(RegressorMixin, BaseEstimator):
    """Neural-network regression with the seed's noise taken out and confidence intervals for what is left.

    Parameters
    ----------
    interval : str or interval method, default="auto"
        How data variability is measured: ``"sectioning"``, ``"batching"``, ``"cheap_bootstrap"``,
        ``"half_sampling"``, ``"infinitesimal_jackknife"``, or an object such as ``CheapBootstrap(replications=8)``.
        ``"auto"`` is sectioning with four batches.
    engine : {"kernel"} or KernelEngine, default="kernel"
        How networks are trained. ``"kernel"`` is the infinitely wide network in closed form.
    network : "auto" or MLP, default="auto"
        Architecture. ``"auto"`` is one hidden ReLU layer with scaled inputs and normal biases.
    regularization : "auto" or float, default="auto"
        λ_n of the loss (1/n) Σ (f(x_i) − y_i)² + λ_n ‖θ − θᵇ‖². ``"auto"`` minimises the leave-one-out error.
    initial_mean : "zero", MonteCarloMean or callable, default="zero"
        s̄, the mean of the untrained network: zero (exact for these networks), an average of random starts, or a
        function of X, in units of y, that the network corrects.
    standardize : bool, default=True
        Scale X and y to mean 0 and variance 1 inside the estimator.
    random_state : int, RandomState or None, default=None
        Seed of the resamples.
    n_jobs : int or None, default=None
        Replicates solved at the same time (joblib).
    device : str, default="auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` takes a GPU where there is one.
    verbose : bool, default=False
        Print what is being done and how long it took.

    Attributes
    ----------
    interval_, engine_, network_, regularization_
        What the arguments came to.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = PNCRegressor(random_state=0).fit(X[:300], y[:300])
    >>> y_hat, intervals = reg.predict_interval(X[300:], confidence_level=[0.9, 0.95])
    >>> intervals.shape
    (142, 2, 2)
    """

    def __init__(
        self,
        *,
        interval: str | IntervalMethod = "auto",
        engine: str | Engine = "kernel",
        network: str | MLP = "auto",
        regularization: str | float = "auto",
        initial_mean: str | MonteCarloMean | Callable[[FloatArray], npt.ArrayLike] = "zero",
        standardize: bool = True,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.interval = interval
        self.engine = engine
        self.network = network
        self.regularization = regularization
        self.initial_mean = initial_mean
        self.standardize = standardize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train on every resample the interval method asks for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        start = time.perf_counter()
        device = resolve_device(self.device)
        engine, network = _resolve_engine(self.engine), _resolve_network(self.network)
        regularization = _check_regularization(self.regularization)
        output_names = names_of(y)
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        method = resolve_interval(self.interval, len(X))
        if method.uses_influence and not engine.offers_influence:
            raise InvalidInputError(f"interval={method} needs converged training; engine={engine} stops earlier")
        network.first_layer_factors(X.shape[1])
        streams = Streams.from_random_state(self.random_state)
        plan = method.plan(len(X), streams)

        scaling = Scaling.fit(X, y.reshape(len(y), -1), active=self.standardize)
        rows = torch.tensor(scaling.to_network(X), device=device)
        labels = torch.tensor(scaling.to_labels(y.reshape(len(y), -1)), device=device)
        if regularization is None:
            regularization = choose_regularization(rows, labels, network, streams)
            self._say(f"λ = {regularization:.3g} by leave-one-out", start)
        mean = self._resolve_initial_mean(network, streams, scaling)
        task = Task(rows, labels, network, regularization)
        self._replicates = fit_pnc(engine, task, plan, mean, n_jobs=self.n_jobs)
        self._say(f"{len(plan.counts)} networks on {len(X):,} rows, {device.type}", start)
        self._scaling, self._single_output, self._output_names = scaling, y.ndim == 1, output_names
        self.interval_, self.engine_, self.network_, self.regularization_ = method, engine, network, regularization
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Prediction at new points: the centre of the interval method's interval.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool
            Return the standard error, for data variability, as well.
        """
        index = index_of(X)
        estimate = self._estimate(self._validate(X))
        mean, error = self._in_shape(estimate.centre), self._in_shape(estimate.standard_error)
        if getattr(self, "_sklearn_output_config", {}).get("transform") == "pandas":
            mean, error = (to_pandas(values, index, self._output_names) for values in (mean, error))
        return (mean, error) if return_std else mean

    def predict_interval(
        self,
        X: Any,
        confidence_level: float | Sequence[float] = 0.95,
        *,
        kind: Literal["confidence", "prediction"] = "confidence",
    ) -> tuple[FloatArray, FloatArray]:
        """Prediction and interval at one or several levels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        confidence_level : float or sequence of float
        kind : {"confidence", "prediction"}
            For the function itself, or for one new noisy observation of it.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_outputs)
        intervals : array of shape (n_samples, 2, n_levels) or (n_samples, n_outputs, 2, n_levels)
        """
        asked = np.atleast_1d(np.asarray(confidence_level, dtype=object))
        levels = [check_level(level, "confidence_level") for level in asked]
        if kind not in ("confidence", "prediction"):
            raise InvalidInputError(f"kind={kind!r} is not known; use 'confidence' or 'prediction'")
        prediction = self._prediction(X, with_procedural=False, with_noise=kind == "prediction")
        bounds = prediction.conf_int if kind == "confidence" else prediction.pred_int
        return prediction.mean, np.stack([bounds(level) for level in levels], axis=-1)

    def get_prediction(self, X: Any) -> Prediction:
        """Everything about the predictions at new points, as one frozen object."""
        return self._prediction(X, with_procedural=True, with_noise=True)

    def sample_networks(
        self, X: Any, n_networks: int = 100, *, members: int = 1, random_state: RandomState = None
    ) -> FloatArray:
        """What single networks of other seeds, trained on the same rows, would have predicted; drawn exactly.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        n_networks : int
            Number of independent draws.
        members : int
            Each draw averages this many networks: a deep ensemble.
        random_state : int, RandomState or None

        Returns
        -------
        array of shape (n_networks, n_samples) or (n_networks, n_samples, n_outputs)
        """
        for name, value in (("n_networks", n_networks), ("members", members)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise InvalidInputError(f"{name}={value!r} must be a whole number of at least 1")
        X = self._validate(X)
        inputs = self._scaling.to_network(X)
        pnc = self._replicates.predict(inputs)[list(self._replicates.plan.reference)].mean(axis=0)
        generator = Streams.from_random_state(random_state).generator("sample networks")
        draws = draw_networks(pnc, self._replicates.procedural_covariance(inputs), n_networks, members, generator)
        draws = self._scaling.from_labels(draws)
        return draws[..., 0] if self._single_output else draws

    def set_output(self, *, transform: Literal["default", "pandas"] | None = None) -> Self:
        """Choose what `predict` returns: arrays, or pandas objects that keep the index of X.

        Parameters
        ----------
        transform : {"default", "pandas"} or None
            None leaves the choice unchanged.
        """
        if transform not in (None, "default", "pandas"):
            raise InvalidInputError(f"transform={transform!r} is not known; use 'default' or 'pandas'")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _prediction(self, X: Any, *, with_procedural: bool, with_noise: bool) -> Prediction:
        index = index_of(X)
        X = self._validate(X)
        estimate = self._estimate(X)
        unit = self._scaling.y_scale**2
        nothing = np.zeros_like(estimate.centre)
        procedural, noise = nothing, nothing
        if with_procedural:
            procedural = self._procedural_variance(X)[:, None] * unit
        if with_noise:
            noise = nothing + self._replicates.noise_variance() * unit
        components = Components(*map(self._in_shape, (estimate.standard_error**2, procedural, noise)))
        return Prediction(
            self._in_shape(estimate.centre),
            self._in_shape(estimate.standard_error),
            estimate.degrees_of_freedom,
            components,
            index=index,
            output_names=self._output_names,
        )

    def _validate(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        validated: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        return validated

    def _estimate(self, X: FloatArray) -> Estimate:
        chunks = [self.interval_.estimate(self._replicates, chunk) for chunk in self._chunks(X)]
        return Estimate(
            self._scaling.from_labels(np.concatenate([chunk.centre for chunk in chunks])),
            self._scaling.y_scale * np.concatenate([chunk.standard_error for chunk in chunks]),
            chunks[0].degrees_of_freedom,
        )

    def _procedural_variance(self, X: FloatArray) -> FloatArray:
        return np.concatenate([self._replicates.procedural_variance(chunk) for chunk in self._chunks(X)])

    def _chunks(self, X: FloatArray) -> list[FloatArray]:
        size = max(1, _NUMBERS_AT_A_TIME // (self._replicates.plan.counts.shape[1] * self._replicates.n_outputs))
        return [self._scaling.to_network(X[start : start + size]) for start in range(0, len(X), size)]

    def _in_shape(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self._single_output else values

    def _resolve_initial_mean(self, network: MLP, streams: Streams, scaling: Scaling) -> InitialMean:
        if callable(self.initial_mean):
            return scaling.mean_of_network(self.initial_mean)
        return resolve_initial_mean(self.initial_mean, network, streams)

    def _say(self, message: str, start: float) -> None:
        if self.verbose:
            print(f"[unseed] {message}, {time.perf_counter() - start:.2f} s")


def _resolve_engine(engine: str | Engine) -> Engine:
    if engine == "kernel":
        return KernelEngine()
    if isinstance(engine, KernelEngine):
        return engine
    if engine in ("linearized", "network"):
        raise NotAvailableError(
            f"engine={engine!r} is not part of this version of unseed; engine='kernel' trains the infinitely wide "
            "network in closed form"
        )
    raise InvalidInputError(f"engine={engine!r} is not known; use 'kernel' or KernelEngine(training=...)")


def _resolve_network(network: str | MLP) -> MLP:
    if network == "auto":
        return MLP(depth=1, activation="relu", bias_scale=1.0, bias_init="normal", scale_inputs=True)
    if isinstance(network, MLP):
        return network
    if callable(network):
        raise NotAvailableError(
            "network as a function that returns a torch module is not part of this version of unseed; use MLP(...)"
        )
    raise InvalidInputError(f"network={network!r} is not known; use 'auto' or MLP(depth=..., activation=...)")


def _check_regularization(regularization: str | float) -> float | None:
    """Return λ_n, or None where it is to be chosen."""
    if isinstance(regularization, str) and regularization == "auto":
        return None
    is_number = isinstance(regularization, (int, float, np.integer, np.floating))
    if isinstance(regularization, bool) or not is_number or not 0 <= float(regularization) < math.inf:
        raise InvalidInputError(
            f"regularization={regularization!r} must be 'auto' or a finite number >= 0, such as 1e-6"
        )
    return float(regularization)
