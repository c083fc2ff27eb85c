"""What all estimators of unseed share: scikit-learn's contract, units, chunks and the ways to ask for an interval."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from unseed._checks import check_flag, check_levels, check_no_text
from unseed._estimators.saving import Saved
from unseed._estimators.training import TrainingData, check_regularization, is_module
from unseed._frames import index_of, names_of, to_pandas
from unseed._law import JointLaw
from unseed._machine import resolve_device
from unseed._predictors import chunks
from unseed._progress import Progress
from unseed._random import RandomState, Streams
from unseed._results import Calibration, Components, Estimate, FloatArray, Prediction
from unseed._scaling import Scaling
from unseed._state import State
from unseed._told import telling_once
from unseed.engines import Engine
from unseed.errors import InvalidInputError
from unseed.intervals import IntervalMethod
from unseed.networks import MLP, ModuleFactory


@dataclass(kw_only=True, eq=False, repr=False)
class IntervalEstimator(Saved):
    """Base of all estimators; subclasses train and say what they know at new points, mostly through `_replicates`."""

    network: str | MLP | ModuleFactory = "auto"
    regularization: str | float = "auto"
    standardize: bool = True
    random_state: RandomState = None
    device: str = "auto"
    verbose: bool = False

    _chosen: ClassVar = {
        **{"interval": (IntervalMethod, type(None)), "engine": (Engine,)},
        **{"network": (), "regularization": (int, float)},
    }

    def _forget(self) -> None:
        """Whatever happens now, the estimator is not half the old and half the new."""
        names = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        for fitted in ("_replicates", "_unit", *names):
            self.__dict__.pop(fitted, None)

    @abstractmethod
    def _check_options(self) -> None:
        """Refuse impossible options before the data are looked at."""

    @abstractmethod
    def _train(self, data: TrainingData) -> None:
        """Train and keep what prediction needs."""

    def _check_has_interval(self) -> None:
        """Refuse to speak of intervals where none was asked for."""

    def _at(self, X: FloatArray, *, is_shared: bool) -> Any:
        """A few new points, ready to be asked about; whether several questions come that have something to share."""
        return self._replicates.at(X, is_shared=is_shared)

    def _estimate_chunk(self, asked: Any) -> Estimate:
        """Centre and standard error at a few points (what `_at` made of them), in the user's units."""
        estimate: Estimate = self.interval_.estimate(asked, asked.X)
        return estimate

    def _centre_chunk(self, asked: Any) -> FloatArray:
        """Prediction at a few points: what the centre alone takes. Shape (n_points, n_outputs)."""
        return self._estimate_chunk(asked).centre

    def _procedural_chunk(self, asked: Any) -> FloatArray:
        """Procedural variance at a few points. Shape (n_points, n_outputs) or (n_points, 1)."""
        return np.asarray(asked.procedural_variance())

    def _noise_chunk(self, asked: Any) -> FloatArray:
        """Noise variance at a few points. Shape (n_outputs,), or (n_points, n_outputs)."""
        return np.asarray(self._replicates.noise_variance)

    def _expected_error(self, asked: Any, estimate: Estimate, noise: FloatArray) -> FloatArray | None:
        """What prediction intervals at a few points are scaled by; None leaves them to the normal law."""
        return None

    def _scores(self) -> FloatArray:
        """Errors at rows that the networks have not seen, over what was expected of them, sorted. Shape (m, n_outputs)."""
        raise NotImplementedError

    def _shares_work(self) -> bool:
        """Whether the interval method asks for more than predictions."""
        return False

    def _joint_law(self, X: FloatArray) -> JointLaw | None:
        """How the errors at these points go together; None where that is not known."""
        return None

    def _numbers_per_point(self, *, is_shared: bool) -> int:
        """Numbers held for each new point while it is handled; fewer where nothing but predictions is asked for."""
        trained = self._replicates.trained
        return int(trained.numbers_per_point if is_shared else trained.numbers_per_prediction)

    def _state(self) -> State:
        rows = {} if self._task is None else {"rows": self._task.state()}
        return {**self._replicates.state(), "has_rows": self._task is not None, **rows}

    def _prediction(self, X: FloatArray, *, with_procedural: bool, with_noise: bool, index: Any = None) -> Prediction:
        self._check_has_interval()
        estimates: list[Estimate] = []
        variances: list[tuple[FloatArray, FloatArray]] = []
        expected: list[FloatArray | None] = []
        for asked in self._chunks(X, is_shared=with_procedural or self._shares_work()):
            estimate = self._estimate_chunk(asked)
            unknown, noise = np.full_like(estimate.centre, np.nan), np.zeros_like(estimate.centre)
            procedural = noise + self._procedural_chunk(asked) if with_procedural else unknown
            if with_noise:
                noise = noise + self._noise_chunk(asked)
                expected.append(self._expected_error(asked, estimate, noise))
            estimates.append(estimate)
            variances.append((procedural, noise))
        calibration, scales = None, [scale for scale in expected if scale is not None]
        if scales:
            calibration = Calibration(self._in_shape(np.concatenate(scales) * self._unit), self._in_shape(self._scores()))
        procedural, noise = map(np.concatenate, zip(*variances, strict=True))
        return self._assembled(Estimate.joined(estimates), procedural, noise, calibration, self._joint_law(X), index)

    def _assembled(
        self,
        estimate: Estimate,
        procedural: FloatArray,
        noise: FloatArray,
        calibration: Calibration | None = None,
        joint_law: JointLaw | None = None,
        index: Any = None,
    ) -> Prediction:
        """In the shape and the units of the user's y, where variances may be beyond float64."""
        centre, error = (self._in_shape(values * self._unit) for values in (estimate.centre, estimate.standard_error))
        with np.errstate(over="ignore"):
            of_data = (estimate.standard_error**2, procedural, noise)
            squares = [self._in_shape(values * self._unit * self._unit) for values in (*of_data, *estimate.parts.values())]
        return Prediction(
            centre,
            error,
            estimate.degrees_of_freedom,
            Components(squares[0], squares[1], squares[2], dict(zip(estimate.parts, squares[3:], strict=True))),
            calibration=calibration,
            joint_law=joint_law if (self._unit == 1).all() else None,
            index=index,
            output_names=self._output_names,
            noise_degrees_of_freedom=max(self.n_rows_ - 2.0, 1.0),
        )

    def _validate(self, X: Any) -> FloatArray:
        check_is_fitted(self, "is_fitted_")
        check_no_text(X=X)
        validated: FloatArray = validate_data(self, X, reset=False, dtype=np.float64, allow_nd=is_module(self.network))
        if validated.shape[1:] != self._row_shape:
            raise InvalidInputError(
                f"X has rows of shape {validated.shape[1:]} and the network was fitted to {self._row_shape}"
            )
        return validated

    def _estimate(self, X: FloatArray) -> Estimate:
        return Estimate.joined([self._estimate_chunk(asked) for asked in self._chunks(X, is_shared=self._shares_work())])

    def _centre(self, X: FloatArray) -> FloatArray:
        return np.concatenate([self._centre_chunk(asked) for asked in self._chunks(X, is_shared=False)])

    def _chunks(self, X: FloatArray, *, is_shared: bool) -> Iterator[Any]:
        for piece in chunks(X, self._numbers_per_point(is_shared=is_shared)):
            yield self._at(piece, is_shared=is_shared)

    def _in_shape(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self._single_output else values


@dataclass(kw_only=True, eq=False, repr=False)
class IntervalRegressor(RegressorMixin, IntervalEstimator):
    """Base of the regressors."""

    @telling_once
    def fit(self, X: Any, y: Any) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        start = time.perf_counter()
        self._forget()
        device, standardize = resolve_device(self.device), check_flag("standardize", self.standardize)
        check_regularization(self.regularization)
        self._check_options()
        output_names = names_of(y)
        check_no_text(X=X, y=y)
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, allow_nd=is_module(self.network))
        columns = self._in_unit(np.asarray(y, dtype=np.float64).reshape(len(y), -1), is_first=True)
        scaling = Scaling.fit(X, columns, active=standardize)
        progress = Progress(active=bool(self.verbose))
        self._train(TrainingData(X, columns, scaling, Streams.from_random_state(self.random_state), device, progress))
        progress.say(f"{len(X):,} rows fitted on the {device.type}", start)
        self._row_shape, self._single_output, self._output_names = X.shape[1:], y.ndim == 1, output_names
        self.n_rows_, self.is_fitted_ = len(X), True
        return self

    @telling_once
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Prediction at new points: the centre of the interval.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool
            Return the standard error, for data variability, as well.
        """
        index = index_of(X)
        if return_std:
            self._check_has_interval()
        known = self._estimate(self._validate(X)) if return_std else None
        answers = [self._centre(self._validate(X))] if known is None else [known.centre, known.standard_error]
        shaped = [self._in_shape(values * self._unit) for values in answers]
        if getattr(self, "_sklearn_output_config", {}).get("transform") == "pandas":
            shaped = [to_pandas(values, index, self._output_names) for values in shaped]
        return tuple(shaped) if return_std else shaped[0]

    @telling_once
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
        levels = check_levels(confidence_level)
        if kind not in ("confidence", "prediction"):
            raise InvalidInputError(f"kind={kind!r} is not known; use 'confidence' or 'prediction'")
        found = self._prediction(self._validate(X), with_procedural=False, with_noise=kind == "prediction")
        prediction = self._answered(found)
        bounds = prediction.conf_int if kind == "confidence" else prediction.pred_int
        return prediction.mean.copy(), np.stack([bounds(level) for level in levels], axis=-1)

    @telling_once
    def get_prediction(self, X: Any, *, seeds: bool = True) -> Prediction:
        """Everything about the predictions at new points, as one frozen object.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        seeds : bool
            False leaves out what other seeds would change (``components.procedural`` is NaN then): with thousands of training
            rows it costs several times as much as everything else.
        """
        check_flag("seeds", seeds)
        index = index_of(X)
        return self._answered(self._prediction(self._validate(X), with_procedural=seeds, with_noise=True, index=index))

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

    def _answered(self, prediction: Prediction) -> Prediction:
        """As the user gets it: in units of y."""
        return prediction

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
