"""`PNCRegressor`: plan, engine, predictor and interval method wired together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from unseed._bent_diagnosis import diagnose_bent
from unseed._checks import check_whole_number
from unseed._diagnosis import diagnose
from unseed._estimators.asking import AskingReplicates
from unseed._estimators.shrinking import smaller
from unseed._estimators.summed import SummedRows
from unseed._estimators.training import TrainingData, is_module, restore_pnc, train_pnc
from unseed._estimators.under_loss import LossRegressor
from unseed._findings import Diagnosis, LeaveOneOut
from unseed._frames import index_of
from unseed._predictors import ContrastQuery, PNCQuery, PNCReplicates
from unseed._random import RandomState, Streams
from unseed._results import Estimate, FloatArray, Prediction
from unseed._scaling import Scaling
from unseed._selection import Choice
from unseed._state import Record, State
from unseed.engines import AllRows, Exact, Landmarks, check_solver, resolve_engine
from unseed.errors import InvalidInputError
from unseed.intervals import IntervalMethod, resolve_interval
from unseed.losses import check_trainable, resolve_loss
from unseed.networks import MonteCarloMean

_ENOUGH_SCORES = 60


@dataclass(kw_only=True, eq=False, repr=False)
class PNCRegressor(AskingReplicates, LossRegressor):
    """Neural-network regression with the seed's noise taken out and confidence intervals for what is left.

    Parameters
    ----------
    interval : str or interval method, default="auto"
        How uncertainty is measured: ``"truth"``, ``"sectioning"``, ``"batching"``, ``"cheap_bootstrap"``,
        ``"half_sampling"``, ``"infinitesimal_jackknife"``, or an object such as ``CheapBootstrap(replications=8)``.
        ``"auto"`` is ``"truth"``, the interval for the regression function, where training converges, and sectioning
        where it stops earlier.
    engine : {"kernel", "linearized", "network"} or engine, default="kernel"
        How networks are trained: infinitely wide in closed form, finite and linearised in closed form, or for real.
        Objects such as ``NetworkEngine(width=2048, trainer=GradientDescent(steps=80, rate=0.01))`` have options.
    network : "auto", AutoNetwork, MLP or callable, default="auto"
        Architecture. ``"auto"`` chooses activation, depth, scales and a relevance per feature (and λ_n, where that is
        ``"auto"``) by marginal likelihood, in seconds; `AutoNetwork` has options. Where training stops before convergence,
        ``"auto"`` is one hidden ReLU layer with scaled inputs and normal biases. Several outputs share network and λ_n: fit
        outputs with very different noise separately. A callable returns a fresh torch module with
        one output per column of y; it goes with the linearized and network engines.
    regularization : "auto" or float, default="auto"
        λ_n of the loss (1/n) Σ (f(x_i) − y_i)² + λ_n ‖θ − θᵇ‖². ``"auto"`` comes with a network that is
        chosen, minimises the leave-one-out error of a given `MLP`, and is 1e-6 for a torch module.
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
    noise : {"auto", "constant", "varying"}, default="auto"
        Whether the noise variance may differ over x; ``"auto"`` lets it where leave-one-out errors speak for it.
    calibration : {"auto", "conformal", "normal"}, default="auto"
        Prediction intervals from quantiles of leave-one-out errors, or of the normal law. ``"auto"`` is conformal from 60
        rows on, where training converges.
    solver : {"auto", "exact", "all_rows", "landmarks"} or object, default="auto"
        How many rows are handled: all in a matrix; all, by iterations (`fit` only; see `AllRows`); or summed up in the
        space of some landmarks (see `Landmarks`). ``"auto"`` is exact up to 10,000 rows (30,000 on a GPU), iterates up to
        20,000, and sums up more or where memory is short.
    loss : str or Loss, default="squared"
        What a prediction costs that misses its label: ``"poisson"`` for counts, ``"gamma"`` for positive amounts, ``"huber"``
        for outliers, ``"quantile"``, ``"logistic"``, or an object such as ``losses.Quantile(level=0.9)`` or of your own. Under
        any but the square, networks are of infinite width, and intervals are made on the scale of the link.

    Attributes
    ----------
    interval_, engine_, network_, regularization_, solver_, loss_
        What the arguments came to.
    selection_ : Selection or None
        The networks that were considered, best first, with their scores; None where the network was given.
    convergence_ : Convergence
        How training went, network by network (network engine), or the iterations on all rows (``solver="all_rows"``).
    n_rows_ : int
        Training rows.
    compression_ : Compression
        What a model made by `compress` has saved and changed.
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

    interval: str | IntervalMethod = "auto"
    noise: str = "auto"
    calibration: str = "auto"

    @property
    def convergence_(self) -> Any:
        """How training went; only where networks were trained step by step, or solved for by iterations."""
        return self._replicates.trained.convergence  # type: ignore[attr-defined]  # not every engine's have one

    def diagnose(self, X: Any = None) -> Diagnosis:
        """Is the theory's ground under these intervals? What holds, what does not, and what to change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            New points: those far from the training rows are flagged.
        """
        check_is_fitted(self, "is_fitted_")
        if X is not None and not self._replicates.has_posterior:
            asked = f"interval={self.interval_}" if "posterior" in self.engine_.capabilities else f"engine={self.engine_}"
            raise InvalidInputError(f"diagnose(X) needs a converged network on all rows with its posterior; {asked} has none")
        points = None if X is None else self._validate(X)
        if self._bends:
            return diagnose_bent(self._replicates, self._probe, points)
        ridge = self.regularization_ / (check_trainable(resolve_loss(self.loss)) / 2)
        return diagnose(self._replicates, self.interval_, self._probe, Choice(self.network_, ridge, self.selection_), points)

    def leave_one_out(self) -> LeaveOneOut | None:
        """Accuracy at training rows, each predicted from all others; from the factorisation that is there, without training.

        None where no converged network has seen all rows.
        """
        check_is_fitted(self, "is_fitted_")
        if not self._replicates.has_posterior:
            return None
        return LeaveOneOut.of(self._replicates.checked.y, self._replicates.left_out.errors, self._unit)

    def get_contrast(self, X: Any, X_other: Any) -> Prediction:
        """Everything about the differences f(x) − f(x'), row by row, as one frozen object.

        Two predictions share the rows they were learned from, so their difference is often known much better than either:
        the interval is made for the difference itself, by the same method. Prediction intervals of the result are those of
        the normal law, and simultaneous ones Bonferroni's.

        Parameters
        ----------
        X, X_other : array-like of shape (n_samples, n_features)
        """
        index = index_of(X)
        left, right = self._validate(X), self._validate(X_other)
        if len(left) != len(right):
            raise InvalidInputError(f"X has {len(left)} rows and X_other has {len(right)}; contrasts are row by row")
        pairs = np.stack([left, right], axis=1)
        queries = (
            ContrastQuery(self._replicates, asked.X, asked.is_shared)
            for asked in self._chunks(pairs, is_shared=self._shares_work())
        )
        answers = [(self.interval_.estimate(query, query.X), query.noise_variance()) for query in queries]
        noise = np.concatenate([variance for _, variance in answers])
        estimate = Estimate.joined([estimate for estimate, _ in answers])
        return self._assembled(estimate, np.zeros_like(noise), noise, index=index)

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
        X, generator = self._validate(X), Streams.from_random_state(random_state).generator("sample networks")
        draws = self._replicates.draw_networks(X, n_networks, members, generator) * self._unit
        return draws[..., 0] if self._single_output else draws

    def compress(self, *, dtype: str = "float64", anchors: int | None = None) -> Self:
        """A smaller model of the same functions; its ``compression_`` says what that has saved and changed.

        For the kernel engine. The estimator itself stays as it is.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            Of rows and labels. Dual weights are solved for again, in float64: as many factorisations as `fit` makes.
        anchors : int or None
            Keep at most so many rows, those that say most about all, and reproduce every replicate's function from them by
            least squares. The posterior variance becomes that of the projected process. Procedural variances are NaN then, and
            `sample_networks` is not available; the infinitesimal jackknife needs all rows.
        """
        check_is_fitted(self, "is_fitted_")
        return smaller(self, dtype, anchors)

    def _check_options(self) -> None:
        engine = resolve_engine(self.engine)
        self._check_loss(engine)
        check_solver(self.solver)
        if is_module(self.network) and engine.is_infinite:
            raise InvalidInputError(
                "engine='kernel' knows the kernels of MLP(...) only; use engine='linearized' or 'network' for a torch module"
            )
        for name, known in (("noise", ("auto", "constant", "varying")), ("calibration", ("auto", "conformal", "normal"))):
            if getattr(self, name) not in known:
                raise InvalidInputError(f"{name}={getattr(self, name)!r} is not known; use {', '.join(map(repr, known))}")
        is_option = isinstance(self.initial_mean, MonteCarloMean) or callable(self.initial_mean)
        if not is_option and not (isinstance(self.initial_mean, str) and self.initial_mean == "zero"):
            raise InvalidInputError(
                f"initial_mean={self.initial_mean!r} is not known; use 'zero', MonteCarloMean(draws=...) or a function of X"
            )

    def _train_exactly(self, data: TrainingData) -> None:
        engine = resolve_engine(self.engine)
        has_posterior = "posterior" in engine.capabilities
        method = resolve_interval(self.interval, len(data.X), has_posterior=has_posterior, is_bent=self._bends)
        if self._bends:
            self._replicates, self._task, choice, self.loss_ = self._train_bent(engine, method, data)
        else:
            self._replicates, self._task, choice = train_pnc(self, engine, method, data)
            self.loss_ = self._link
        self._keep(method, engine, choice, data.X, data.streams)

    def _take(self, summed: SummedRows, solved: tuple[PNCReplicates, Choice] | None = None) -> None:
        method = resolve_interval(self.interval, summed.sums.n_rows, has_posterior=True)
        if solved is None:
            self.solver_ = summed.solver
        self._replicates, choice = solved or summed.solved()
        self._task, self.loss_ = None, self._link
        self._keep(method, resolve_engine(self.engine), choice, self._replicates.checked.X, Streams(0))

    def _noise_chunk(self, asked: PNCQuery) -> FloatArray:
        return asked.noise_variance()

    def _expected_error(self, asked: PNCQuery, estimate: Estimate, noise: FloatArray) -> FloatArray | None:
        if self._has_own_scale:
            return None
        is_wanted = self.calibration == "conformal" or len(self._replicates.checked.X) >= _ENOUGH_SCORES
        if self.calibration == "normal" or not is_wanted or not self._replicates.has_posterior:
            return None
        posterior = estimate.parts.get("posterior")
        if posterior is None or "landmarks" in estimate.parts:  # the scores are relative to all of the posterior
            posterior = asked.posterior_variance(asked.X)
        chosen = Choice(self.network_, self.regularization_, self.selection_)
        optimism = chosen.optimism(float(self.n_rows_), is_given=self.regularization != "auto")
        return np.asarray(np.sqrt((posterior + noise) * optimism))

    def _scores(self) -> FloatArray:
        return self._replicates.scores

    def _state(self) -> State:
        return {
            **super()._state(),
            "probe": self._probe,
            "converges": bool(self.engine_.converges),
            "solver": self.solver_,
            "loss": self.loss_,
        }

    def _restore(self, record: Record, device: torch.device) -> Scaling:
        choice = Choice(self.network_, self.regularization_, self.selection_)
        self._replicates, task = restore_pnc(record, self, choice, self._loss_of_task(record), device)
        self._task = task if len(task.X) else None
        # models of 0.1.0 know of no other solver
        self.solver_ = record.option("solver", Exact, AllRows, Landmarks) if "solver" in record.facts else Exact()
        if "summed" in record.facts:
            self._summed = SummedRows.restore(record.part("summed"), self.initial_mean, device)
        self._probe = record.array("probe", None, *self._replicates.scaling.x_mean.shape)
        return self._replicates.scaling
