"""What all regressors of unseed share: scikit-learn's contract, units, chunks and the ways to ask for an interval."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
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
    def _estimate_chunk(self, X: FloatArray) -> Estimate:
        """Centre and standard error at a few points, in the user's units."""

    @abstractmethod
    def _procedural_chunk(self, X: FloatArray) -> FloatArray:
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

    def _prediction(self, X: FloatArray, *, with_procedural: bool, with_noise: bool, index: Any = None) -> Prediction:
        self._check_has_interval()
        estimate = self._estimate(X)
        procedural, noise = np.full_like(estimate.centre, np.nan), np.zeros_like(estimate.centre)
        if with_procedural:
            procedural = np.zeros_like(estimate.centre) + self._in_chunks(self._procedural_chunk, X)
        if with_noise:
            noise = noise + self._in_chunks(self._noise_chunk, X)
        calibration = self._calibration(X, estimate, noise) if with_noise else None
        return self._assembled(estimate, procedural, noise, calibration, self._joint_law(X), index)

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

    def _calibration(self, X: FloatArray, estimate: Estimate, noise: FloatArray) -> Calibration | None:
        """What prediction intervals are scaled by; None leaves them to the normal law."""
        return None

    def _joint_law(self, X: FloatArray) -> JointLaw | None:
        """How the errors at these points go together; None where that is not known."""
        return None

    def _noise_chunk(self, X: FloatArray) -> FloatArray:
        """Noise variance at a few points: the same at all. Shape (n_points, n_outputs)."""
        return np.broadcast_to(self._noise_variance(), (len(X), len(self._noise_variance())))

    def _validate(self, X: Any) -> FloatArray:
        check_is_fitted(self, "is_fitted_")
        validated: FloatArray = validate_data(self, X, reset=False, dtype=np.float64, allow_nd=self._takes_any_shape())
        if validated.shape[1:] != self._row_shape:
            raise InvalidInputError(
                f"X has rows of shape {validated.shape[1:]} and the network was fitted to {self._row_shape}"
            )
        return validated

    def _estimate(self, X: FloatArray, of_chunk: Callable[[FloatArray], Estimate] | None = None) -> Estimate:
        pieces = self._chunks(X, self._numbers_per_estimate() if of_chunk is None else None)
        chunks = [(of_chunk or self._estimate_chunk)(chunk) for chunk in pieces]
        return Estimate(
            np.concatenate([chunk.centre for chunk in chunks]),
            np.concatenate([chunk.standard_error for chunk in chunks]),
            chunks[0].degrees_of_freedom,
            {name: np.concatenate([chunk.parts[name] for chunk in chunks]) for name in chunks[0].parts},
        )

    def _in_chunks(self, function: Callable[[FloatArray], FloatArray], X: FloatArray) -> FloatArray:
        return np.concatenate([function(chunk) for chunk in self._chunks(X)])

    def _numbers_per_estimate(self) -> int:
        """Numbers held for each new point while its centre and standard error are found."""
        return self._numbers_per_point()

    def _chunks(self, X: FloatArray, numbers_per_point: int | None = None) -> list[FloatArray]:
        return chunks(X, numbers_per_point or self._numbers_per_point())

    def _in_shape(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self._single_output else values
