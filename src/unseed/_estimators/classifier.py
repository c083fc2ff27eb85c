"""`PNCClassifier`: probabilities of classes with an interval around each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from unseed._bent_diagnosis import diagnose_bent
from unseed._checks import check_flag, check_level, check_levels
from unseed._class_prediction import ClassPrediction, probabilities
from unseed._estimators.asking import AskingReplicates
from unseed._estimators.bent import check_bent, classes_of_task, train_bent
from unseed._estimators.labels import (
    Labels,
    check_class_weight,
    check_label_column,
    check_new_labels,
    classes_among,
    warn_of_rare,
    with_class_weights,
)
from unseed._estimators.regressor import IntervalEstimator
from unseed._estimators.training import TrainingData, check_regularization, restore_pnc
from unseed._findings import Diagnosis
from unseed._frames import index_of
from unseed._machine import resolve_device
from unseed._progress import Progress
from unseed._random import Streams
from unseed._results import FloatArray
from unseed._scaling import Scaling
from unseed._selection import Choice
from unseed._state import Record, State
from unseed._told import telling_once
from unseed.engines import Engine, Exact, check_solver, resolve_engine, resolve_solver
from unseed.engines import Solver as RowSolver
from unseed.errors import InvalidInputError
from unseed.intervals import IntervalMethod, resolve_interval
from unseed.losses import Logistic, Loss, Softmax
from unseed.networks import ZeroMean

_SOLVED = frozenset({"_replicates", "_task", "_probe", "regularization_", "network_", "selection_", "interval_", "engine_"})


@dataclass(kw_only=True, eq=False, repr=False)
class PNCClassifier(ClassifierMixin, AskingReplicates, IntervalEstimator):
    """Neural-network classification free of the seed, with confidence intervals for the probability of every class.

    Two classes are a logistic fit, more a softmax; training is centred at the start, so that nothing of it is left. Intervals
    are made of log-odds, of each class against all others, and mapped: they never leave the range from 0 to 1.

    Parameters
    ----------
    interval : str or interval method, default="auto"
        ``"auto"`` and ``"truth"`` are `LaplaceInterval`, the interval for the probabilities themselves; the other names and
        objects are as for `PNCRegressor`.
    engine : "kernel" or KernelEngine, default="kernel"
        Networks of infinite width, trained to convergence.
    network : "auto", AutoNetwork or MLP, default="auto"
        ``"auto"`` chooses by Laplace's evidence.
    regularization : "auto" or float, default="auto"
        λ_n of the loss (1/n) Σ ℓ + λ_n ‖θ − θᵇ‖², ℓ minus the log-likelihood.
    class_weight : dict, "balanced" or None, default=None
        What rows of each class count, times their ``sample_weight``.
    standardize, solver, random_state, n_jobs, device, verbose
        As for `PNCRegressor`; ``standardize`` is about X, and all rows are held at once.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    interval_, engine_, network_, regularization_, solver_, selection_, n_rows_, n_features_in_, feature_names_in_
        As for `PNCRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PNCClassifier(random_state=0).fit(X[::2, :2], y[::2])
    >>> probability, interval = clf.predict_interval(X[1::2, :2], confidence_level=0.95)
    >>> probability.shape, interval.shape
    ((75, 3), (75, 3, 2, 1))
    """

    interval: str | IntervalMethod = "auto"
    engine: str | Engine = "kernel"
    solver: str | RowSolver = "auto"
    class_weight: Any = None
    n_jobs: int | None = None

    initial_mean: ClassVar[str] = "zero"
    _rows: tuple[FloatArray, Labels, FloatArray] | None = field(init=False, default=None)

    @telling_once
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts: 2 is that row twice.
        """
        self._begin()
        X, y, weights = self._checked(X, y, sample_weight, is_first=True)
        self.classes_ = classes_among(y)
        self._rows = X, np.searchsorted(self.classes_, y), weights
        self._fit_to(*self._rows)
        self.is_fitted_ = True
        return self

    @telling_once
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Take further rows; the model is that of all rows so far, made when it is asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All classes there will be; in the first call, where the first rows do not have them all.
        sample_weight : array-like of shape (n_samples,), optional
        """
        is_first = "is_fitted_" not in vars(self)
        if is_first:
            self._begin()
        X, y, weights = self._checked(X, y, sample_weight, is_first=is_first)
        if is_first:
            self.classes_ = classes_among(y, classes)
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise InvalidInputError(f"classes={classes!r} are not those of the first call, {self.classes_.tolist()}")
        check_new_labels(y, self.classes_)
        before, new = self._held_rows(), (X, np.searchsorted(self.classes_, y), weights)
        rows = new if before is None else (*map(np.concatenate, zip(before, new, strict=True)),)
        for name in _SOLVED:
            self.__dict__.pop(name, None)
        self._rows, self.n_rows_, self.is_fitted_ = (rows[0], rows[1], rows[2]), len(rows[0]), True
        return self

    @telling_once
    def predict(self, X: Any) -> Labels:
        """The most probable class."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @telling_once
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities. Shape (n_samples, n_classes)."""
        found = probabilities(self._centre(self._validate(X)))
        found = found if len(self.classes_) > 2 else np.hstack([1 - found, found])
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    @telling_once
    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds: of the second class, (n_samples,), or of each against all others, (n_samples, n_classes)."""
        return self._in_shape(self._centre(self._validate(X)))

    @telling_once
    def predict_interval(self, X: Any, confidence_level: float | Sequence[float] = 0.95) -> tuple[FloatArray, FloatArray]:
        """Probabilities and their intervals at one or several levels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        confidence_level : float or sequence of float

        Returns
        -------
        probability : array of shape (n_samples, n_classes)
        intervals : array of shape (n_samples, n_classes, 2, n_levels)
        """
        levels = check_levels(confidence_level)
        found = self._of_classes(X)
        return found.mean, np.stack([found.conf_int(level) for level in levels], axis=-1)

    @telling_once
    def get_prediction(self, X: Any) -> ClassPrediction:
        """Everything about the probabilities at new points, as one frozen object."""
        return self._of_classes(X)

    @telling_once
    def predict_set(self, X: Any, confidence_level: float = 0.95) -> npt.NDArray[np.bool_]:
        """Classes that may be the most probable one, as far as the intervals tell. Shape (n_samples, n_classes)."""
        return self._of_classes(X).predict_set(check_level(confidence_level, "confidence_level"))

    def diagnose(self, X: Any = None) -> Diagnosis:
        """Is the theory's ground under these intervals? As `PNCRegressor.diagnose`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            New points: those far from the training rows are flagged.
        """
        check_is_fitted(self, "is_fitted_")
        return diagnose_bent(self._replicates, self._probe, None if X is None else self._validate(X))

    def _begin(self) -> None:
        self._forget()
        self._rows = None
        check_flag("standardize", self.standardize)
        check_regularization(self.regularization)
        check_class_weight(self.class_weight)
        self._check_options()

    def _check_options(self) -> None:
        check_bent(Logistic(), resolve_engine(self.engine), self.regularization)
        check_solver(self.solver)

    @property
    def _loss(self) -> Loss:
        return Logistic() if len(self.classes_) == 2 else Softmax()

    def _checked(self, X: Any, y: Any, weights: Any, *, is_first: bool) -> tuple[FloatArray, Labels, FloatArray]:
        """Rows that count, as arrays."""
        if y is not None:
            check_label_column(y)
        X, y = validate_data(self, X, y, dtype=np.float64, reset=is_first)
        if is_first:
            self._row_shape, self._output_names = X.shape[1:], None
        if weights is not None and not np.any(np.asarray(weights)):
            raise InvalidInputError("sample_weight is zero for every row; at least two classes need a row that counts")
        counts = _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
        kept = counts > 0
        return X[kept], y[kept], counts[kept]

    def _fit_to(self, X: FloatArray, codes: Labels, weights: FloatArray) -> None:
        start, progress = time.perf_counter(), Progress(active=bool(self.verbose))
        device, streams = resolve_device(self.device), Streams.from_random_state(self.random_state)
        self._single_output = len(self.classes_) == 2
        columns = np.eye(len(self.classes_))[codes][:, int(self._single_output) :]
        warn_of_rare(codes, self.classes_)
        scaling = Scaling.fit(X, columns, active=bool(self.standardize))
        self._weights = with_class_weights(weights, codes, self.classes_, self.class_weight)
        self._train(TrainingData(X, columns, scaling, streams, device, progress))
        self.n_rows_ = len(X)
        progress.say(f"{len(X):,} rows fitted on the {device.type}", start)

    def _train(self, data: TrainingData) -> None:
        engine = resolve_engine(self.engine)
        self.solver_ = resolve_solver(self.solver, engine, len(data.X), data.device)
        if not isinstance(self.solver_, Exact):
            raise InvalidInputError(
                f"a classifier holds all rows at once so far: give it {len(data.X):,} rows with solver='exact', where memory "
                "has room for their matrix, or a sample of them"
            )
        method = resolve_interval(self.interval, len(data.X), has_posterior=True, is_bent=True)

        def mean_of(*_: object) -> ZeroMean:
            return ZeroMean(data.y.shape[1])

        found = train_bent(self, engine, method, self._loss, data, self._weights, mean_of)
        self._replicates, self._task, choice = found.replicates, found.task, found.choice
        self._keep(method, engine, choice, data.X, data.streams)

    def _of_classes(self, X: Any) -> ClassPrediction:
        check_is_fitted(self, "is_fitted_")
        index = index_of(X)
        found = self._prediction(self._validate(X), with_procedural=False, with_noise=False, index=index)
        return ClassPrediction(found, self.classes_)

    def _held_rows(self) -> tuple[FloatArray, Labels, FloatArray] | None:
        """Rows so far, with the numbers of their classes; those of `fit` are what the networks were trained on."""
        if self._rows is not None or "is_fitted_" not in vars(self):
            return self._rows
        if self._task is None or self.class_weight is not None:
            raise InvalidInputError("a model with class_weight that was read from a file takes no more rows: fit it again")
        return classes_of_task(self._task, self._replicates.scaling)

    def _state(self) -> State:
        labels, kind = self.classes_.tolist(), self.classes_.dtype.str
        return {**super()._state(), "probe": self._probe, "solver": self.solver_, "classes": labels, "label_kind": kind}

    def _restore(self, record: Record, device: torch.device) -> Scaling:
        kind = record.fact("label_kind", str)
        if np.dtype(kind).kind not in "biufUO":
            raise record.fault(f"labels cannot be of the kind {kind!r:.20}")
        self.classes_ = np.array(record.fact("classes", list), dtype=np.dtype(kind))
        choice = Choice(self.network_, self.regularization_, self.selection_)
        self._replicates, self._task = restore_pnc(record, self, choice, self._loss, device)
        self.solver_ = record.option("solver", Exact)
        self._probe = record.array("probe", None, *self._replicates.scaling.x_mean.shape)
        if self._replicates.scaling.n_outputs != (1 if len(self.classes_) == 2 else len(self.classes_)):
            raise record.fault(f"{len(self.classes_)} classes do not fit the networks")
        return self._replicates.scaling

    def __getattr__(self, name: str) -> Any:
        """What new rows have made out of date is made again when it is asked for."""
        if name in _SOLVED | {"solver_"} and "is_fitted_" in vars(self) and vars(self).get("_rows") is not None:
            self._fit_to(*vars(self)["_rows"])
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
