"""`PNCRegressor`: plan, engine, predictor and interval method wired together."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted

from unseed.checks import check_whole_number
from unseed.diagnosis import diagnose
from unseed.engines import Engine, KernelEngine, Network, Task, make_batch
from unseed.errors import InvalidInputError
from unseed.estimators.base import IntervalRegressor, TrainingData
from unseed.estimators.options import check_regularization, choose, is_module, resolve_engine
from unseed.intervals import IntervalMethod, resolve_interval
from unseed.networks import MLP, AveragedDraws, GivenMean, InitialMean, ModuleFactory, MonteCarloMean, ZeroMean
from unseed.predictors import PNCReplicates
from unseed.random import RandomState, Streams
from unseed.results import Diagnosis, Estimate, FloatArray

_MODULE_DRAWS, _PROBES = 100, 50


class PNCRegressor(IntervalRegressor):
    """Neural-network regression with the seed's noise taken out and confidence intervals for what is left.

    Parameters
    ----------
    interval : str or interval method, default="auto"
        How data variability is measured: ``"sectioning"``, ``"batching"``, ``"cheap_bootstrap"``,
        ``"half_sampling"``, ``"infinitesimal_jackknife"``, or an object such as ``CheapBootstrap(replications=8)``.
        ``"auto"`` is sectioning with four batches.
    engine : {"kernel", "linearized", "network"} or engine, default="kernel"
        How networks are trained: infinitely wide in closed form, finite and linearised in closed form, or for real.
        Objects such as ``NetworkEngine(width=2048, trainer=GradientDescent(steps=80, rate=0.01))`` have options.
    network : "auto", "evidence", MLP or callable, default="auto"
        Architecture. ``"auto"`` is one hidden ReLU layer with scaled inputs and normal biases. ``"evidence"`` chooses
        activation, depth, scales and a relevance per feature (and λ_n, where that is ``"auto"``) by marginal likelihood:
        a few seconds, and often a much better network. A callable returns a fresh torch module with one output per column
        of y; it goes with the linearized and network engines.
    regularization : "auto" or float, default="auto"
        λ_n of the loss (1/n) Σ (f(x_i) − y_i)² + λ_n ‖θ − θᵇ‖². ``"auto"`` minimises the leave-one-out error of the
        infinitely wide network, and is 1e-6 for a torch module.
    initial_mean : "zero", MonteCarloMean or callable, default="zero"
        s̄, the mean of the untrained network: zero (exact for an MLP; a torch module gets ``MonteCarloMean(draws=100)``
        instead), an average of random starts, or a function of X, in units of y, that the network corrects.
    standardize : bool, default=True
        Scale X and y to mean 0 and variance 1 inside the estimator.
    random_state : int, RandomState or None, default=None
        Seed of the resamples and of random starts.
    n_jobs : int or None, default=None
        Replicates solved at the same time (joblib) by the kernel and linearized engines; the network engine trains all
        networks together in any case.
    device : str, default="auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` takes a GPU where there is one.
    verbose : bool, default=False
        Show what is being done and how far it is.

    Attributes
    ----------
    interval_, engine_, network_, regularization_
        What the arguments came to.
    selection_ : Selection or None
        The networks that ``network="evidence"`` considered, with their scores.
    convergence_ : Convergence
        How training went, network by network (network engine only).
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
        network: str | MLP | ModuleFactory = "auto",
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

    def diagnose(self) -> Diagnosis:
        """Is the theory's ground under these intervals? What holds, what does not, and what to change."""
        check_is_fitted(self, "is_fitted_")
        return diagnose(self._replicates, self.interval_, self._probe)

    def sample_networks(
        self, X: Any, n_networks: int = 100, *, members: int = 1, random_state: RandomState = None
    ) -> FloatArray:
        """Draw exactly what single networks of other seeds, trained on the same rows, would have predicted.

        For the kernel engine.

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
        check_whole_number("n_networks", n_networks, at_least=1)
        check_whole_number("members", members, at_least=1)
        X = self._validate(X)
        generator = Streams.from_random_state(random_state).generator("sample networks")
        draws = self._replicates.draw_networks(X, n_networks, members, generator)
        return draws[..., 0] if self._single_output else draws

    def _check_options(self) -> None:
        engine = resolve_engine(self.engine)
        check_regularization(self.regularization)
        if is_module(self.network) and isinstance(engine, KernelEngine):
            raise InvalidInputError(
                "engine='kernel' knows the kernels of MLP(...) only; use engine='linearized' or 'network' for a torch module"
            )
        is_option = isinstance(self.initial_mean, MonteCarloMean) or callable(self.initial_mean)
        if not is_option and not (isinstance(self.initial_mean, str) and self.initial_mean == "zero"):
            raise InvalidInputError(
                f"initial_mean={self.initial_mean!r} is not known; use 'zero', MonteCarloMean(draws=...) or a function of X"
            )

    def _takes_any_shape(self) -> bool:
        return is_module(self.network)

    def _train(self, data: TrainingData) -> None:
        engine, method = resolve_engine(self.engine), resolve_interval(self.interval, len(data.X))
        if method.uses_influence and not engine.offers_influence:
            raise InvalidInputError(f"interval={method} needs converged training; engine={engine} stops earlier")
        if method.uses_influence and self.regularization == 0:
            raise InvalidInputError(
                "regularization=0 leaves no residuals, and without them the infinitesimal jackknife has no spread to see; "
                "use a positive regularization or interval='half_sampling'"
            )
        plan = method.plan(len(data.X), data.streams)
        inputs, labels = data.inputs, data.labels
        start = time.perf_counter()
        choice = choose(self.network, self.regularization, inputs, labels, data.streams)
        network, regularization = choice.network, choice.regularization
        data.progress.say(f"{network}, λ = {regularization:.3g}, {method}", start)
        mean = self._resolve_initial_mean(network, inputs, labels, data)
        groups = torch.stack([labels, mean(data.X, inputs)], dim=1)  # Algorithm 1: base on y, auxiliary on s̄
        task = Task(inputs, groups, network, regularization, data.streams, data.progress)
        trained = engine.fit(task, plan, n_jobs=self.n_jobs)
        self._replicates = PNCReplicates(trained, plan, data.scaling, data.device, mean)
        # Points where `diagnose` looks: half-way between rows, since at the rows themselves an interpolating fit is perfect.
        pairs = data.streams.generator("probe").integers(len(data.X), size=(2, _PROBES))
        self._probe = (data.X[pairs[0]] + data.X[pairs[1]]) / 2
        self.interval_, self.engine_, self.network_, self.regularization_ = method, engine, network, regularization
        self.selection_ = choice.selection
        if hasattr(trained, "convergence"):
            self.convergence_ = trained.convergence

    def _resolve_initial_mean(
        self, network: Network, inputs: torch.Tensor, labels: torch.Tensor, data: TrainingData
    ) -> InitialMean:
        option = self.initial_mean
        if option == "zero" and not isinstance(network, MLP):
            option = MonteCarloMean(draws=_MODULE_DRAWS)
        if isinstance(option, MonteCarloMean):
            task = Task(inputs, labels[:, None], network, 0.0)
            width = getattr(resolve_engine(self.engine), "width", None)
            return AveragedDraws(make_batch(task, width), option.draws, data.streams)
        if callable(option):
            return GivenMean(option, data.scaling)
        return ZeroMean(labels.shape[1])

    def _estimate_chunk(self, X: FloatArray) -> Estimate:
        return self.interval_.estimate(self._replicates, X)

    def _procedural_chunk(self, X: FloatArray) -> FloatArray:
        return self._replicates.procedural_variance(X)

    def _noise_variance(self) -> FloatArray:
        return self._replicates.noise_variance

    def _numbers_per_point(self) -> int:
        return int(self._replicates.numbers_per_point)
