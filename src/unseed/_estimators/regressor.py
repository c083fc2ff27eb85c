"""What all regressors of unseed share: scikit-learn's contract, units, chunks and the ways to ask for an interval."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from unseed._checks import check_flag
from unseed._estimators.saving import Saved
from unseed._frames import index_of, names_of, to_pandas
from unseed._machine import resolve_device
from unseed._predictors import chunks
from unseed._progress import Progress
from unseed._random import Streams
from unseed._results import Calibration, Components, Estimate, FloatArray, JointLaw, Prediction, check_level
from unseed._scaling import Scaling
from unseed.errors import InvalidInputError


class TrainingData(NamedTuple):
    """Validated data in the user's units, with what goes with them."""

    X: FloatArray  # (n, ...)
    y: FloatArray  # (n, k)
    scaling: Scaling
    streams: Streams
    device: torch.device
    progress: Progress

    @property
    def inputs(self) -> torch.Tensor:
        """Rows as the network sees them, on the device. Shape (n, ...)."""
        return torch.tensor(self.scaling.to_network(self.X), device=self.device)

    @property
    def labels(self) -> torch.Tensor:
        """Labels as the network sees them, on the device. Shape (n, k)."""
        return torch.tensor(self.scaling.to_labels(self.y), device=self.device)


class IntervalRegressor(RegressorMixin, Saved):
    """Base of the regressors; subclasses train and say what they know at new points."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        start = time.perf_counter()
        self._forget()
        device = resolve_device(self.device)
        standardize = check_flag("standardize", self.standardize)
        self._check_options()
        output_names = names_of(y)
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, allow_nd=self._takes_any_shape())
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        scaling = Scaling.fit(X, columns, active=standardize)
        streams = Streams.from_random_state(self.random_state)
        progress = Progress(active=bool(self.verbose))
        self._train(TrainingData(X, columns, scaling, streams, device, progress))
        progress.say(f"{len(X):,} rows fitted on the {device.type}", start)
        self._row_shape, self._single_output, self._output_names = X.shape[1:], y.ndim == 1, output_names
        self.n_rows_ = len(X)
        self.is_fitted_ = True
        return self

    def _forget(self) -> None:
        """Whatever happens now, the estimator is not half the old and half the new."""
        for fitted in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, fitted)

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
            estimate = self._estimate(self._validate(X))
            answers = [estimate.centre, estimate.standard_error]
        else:
            answers = [self._centre(self._validate(X))]
        shaped = list(map(self._in_shape, answers))
        if getattr(self, "_sklearn_output_config", {}).get("transform") == "pandas":
            shaped = [to_pandas(values, index, self._output_names) for values in shaped]
        return tuple(shaped) if return_std else shaped[0]

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
        if asked.ndim != 1 or len(asked) == 0:
            raise InvalidInputError(f"confidence_level={confidence_level!r} must be a number or a list of numbers")
        levels = [check_level(level, "confidence_level") for level in asked]
        if kind not in ("confidence", "prediction"):
            raise InvalidInputError(f"kind={kind!r} is not known; use 'confidence' or 'prediction'")
        prediction = self._prediction(self._validate(X), with_procedural=False, with_noise=kind == "prediction")
        bounds = prediction.conf_int if kind == "confidence" else prediction.pred_int
        return prediction.mean.copy(), np.stack([bounds(level) for level in levels], axis=-1)

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
        return self._prediction(self._validate(X), with_procedural=seeds, with_noise=True, index=index)

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

    @abstractmethod
    def _check_options(self) -> None:
        """Refuse impossible options before the data are looked at."""

    @abstractmethod
    def _train(self, data: TrainingData) -> None:
        """Train and keep what prediction needs."""

    @abstractmethod
    def _estimate_chunk(self, asked: Any) -> Estimate:
        """Centre and standard error at a few points (what `_at` made of them), in the user's units."""

    @abstractmethod
    def _procedural_chunk(self, asked: Any) -> FloatArray:
        """Procedural variance at a few points. Shape (n_points, n_outputs) or (n_points, 1)."""

    @abstractmethod
    def _noise_variance(self) -> FloatArray:
        """Noise variance. Shape (n_outputs,)."""

    @abstractmethod
    def _numbers_per_point(self) -> int:
        """Numbers held for each new point while it is handled."""

    def _takes_any_shape(self) -> bool:
        return False

    def _check_has_interval(self) -> None:
        """Refuse to speak of intervals where none was asked for."""

    def _at(self, X: FloatArray, *, is_shared: bool) -> Any:
        """A few new points, ready to be asked about; whether several questions come that have something to share."""
        return X

    def _centre_chunk(self, asked: Any) -> FloatArray:
        """Prediction at a few points: what the centre alone takes. Shape (n_points, n_outputs)."""
        return self._estimate_chunk(asked).centre

    def _prediction(self, X: FloatArray, *, with_procedural: bool, with_noise: bool, index: Any = None) -> Prediction:
        self._check_has_interval()
        answers = [
            self._answers(asked, with_procedural=with_procedural, with_noise=with_noise)
            for asked in self._chunks(X, is_shared=with_procedural or self._shares_work())
        ]
        estimate = Estimate.joined([answer.estimate for answer in answers])
        procedural, noise = (np.concatenate([part[place] for part in answers]) for place in (1, 2))
        calibration = None
        if with_noise and answers[0].expected is not None:
            expected = np.concatenate([answer.expected for answer in answers if answer.expected is not None])
            calibration = Calibration(self._in_shape(expected), self._in_shape(self._scores()))
        return self._assembled(estimate, procedural, noise, calibration, self._joint_law(X), index)

    def _answers(self, asked: Any, *, with_procedural: bool, with_noise: bool) -> Answers:
        """Everything about a few points, one question after the other."""
        estimate = self._estimate_chunk(asked)
        procedural, noise = np.full_like(estimate.centre, np.nan), np.zeros_like(estimate.centre)
        if with_procedural:
            procedural = np.zeros_like(estimate.centre) + self._procedural_chunk(asked)
        if with_noise:
            noise = noise + self._noise_chunk(asked)
        return Answers(estimate, procedural, noise, self._expected_error(asked, estimate, noise) if with_noise else None)

    def _assembled(
        self,
        estimate: Estimate,
        procedural: FloatArray,
        noise: FloatArray,
        calibration: Calibration | None = None,
        joint_law: JointLaw | None = None,
        index: Any = None,
    ) -> Prediction:
        """In the shape of the user's y."""
        parts = {name: self._in_shape(values) for name, values in estimate.parts.items()}
        data, seed, new = map(self._in_shape, (estimate.standard_error**2, procedural, noise))
        return Prediction(
            self._in_shape(estimate.centre),
            self._in_shape(estimate.standard_error),
            estimate.degrees_of_freedom,
            Components(data, seed, new, parts),
            calibration=calibration,
            joint_law=joint_law,
            index=index,
            output_names=self._output_names,
        )

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

    def _noise_chunk(self, asked: Any) -> FloatArray:
        """Noise variance at a few points: the same at all. Shape (n_outputs,), or (n_points, n_outputs)."""
        return self._noise_variance()

    def _validate(self, X: Any) -> FloatArray:
        check_is_fitted(self, "is_fitted_")
        validated: FloatArray = validate_data(self, X, reset=False, dtype=np.float64, allow_nd=self._takes_any_shape())
        if validated.shape[1:] != self._row_shape:
            raise InvalidInputError(
                f"X has rows of shape {validated.shape[1:]} and the network was fitted to {self._row_shape}"
            )
        return validated

    def _estimate(self, X: FloatArray) -> Estimate:
        return Estimate.joined([self._estimate_chunk(asked) for asked in self._chunks(X, is_shared=self._shares_work())])

    def _centre(self, X: FloatArray) -> FloatArray:
        return np.concatenate([self._centre_chunk(asked) for asked in self._chunks(X, is_shared=False)])

    def _numbers_per_prediction(self) -> int:
        """Numbers held for each new point where nothing but predictions is asked for."""
        return self._numbers_per_point()

    def _chunks(self, X: FloatArray, *, is_shared: bool) -> Iterator[Any]:
        size = self._numbers_per_point() if is_shared else self._numbers_per_prediction()
        for piece in chunks(X, size):
            yield self._at(piece, is_shared=is_shared)

    def _in_shape(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self._single_output else values


class Answers(NamedTuple):
    """What is known of a few points."""

    estimate: Estimate
    procedural: FloatArray  # (n_points, n_outputs)
    noise: FloatArray  # (n_points, n_outputs)
    expected: FloatArray | None  # (n_points, n_outputs)
