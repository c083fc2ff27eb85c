"""What an interval method hands over (`Estimate`) and what a user holds (`Prediction`): frozen, any level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from unseed._checks import check_level as check_level
from unseed._frames import pandas_for
from unseed._quantiles import can_be_simulated, quantile_of_largest
from unseed._quantiles import two_sided_quantile as two_sided_quantile
from unseed.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]

MAX_JOINT_POINTS = 2000
"""Above so many points, a simultaneous band is Bonferroni's."""


def _frozen(values: FloatArray) -> FloatArray:
    copy = np.array(values, dtype=np.float64)
    copy.setflags(write=False)
    return copy


@dataclass(frozen=True)
class Estimate:
    """Centre and standard error at every point, as one interval method sees them.

    Attributes
    ----------
    centre, standard_error : array of shape (n_points, n_outputs)
    degrees_of_freedom : float
        Of Student's t; infinite means the normal law.
    parts : mapping from str to array of shape (n_points, n_outputs)
        Variances that the squared standard error is the sum of, where a method adds several.
    """

    centre: FloatArray
    standard_error: FloatArray
    degrees_of_freedom: float
    parts: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shapes = np.shape(self.centre), np.shape(self.standard_error)
        if shapes[0] != shapes[1]:
            raise InvalidInputError(
                f"centre has shape {shapes[0]} and standard_error {shapes[1]}; both need one entry per output"
            )
        if not self.degrees_of_freedom > 0:
            raise InvalidInputError(f"degrees_of_freedom={self.degrees_of_freedom:g} must be positive")

    @classmethod
    def joined(cls, pieces: Sequence[Estimate]) -> Estimate:
        """One of all points, from those of a few each."""
        return cls(
            np.concatenate([piece.centre for piece in pieces]),
            np.concatenate([piece.standard_error for piece in pieces]),
            pieces[0].degrees_of_freedom,
            {name: np.concatenate([piece.parts[name] for piece in pieces]) for name in pieces[0].parts},
        )


@dataclass(frozen=True)
class Components:
    """Where the uncertainty at each point comes from, as variances in squared units of y.

    Attributes
    ----------
    data : array, shape of the mean
        Another data set of the same size would move the prediction by this much; the confidence interval is about it.
    procedural : array, shape of the mean
        Another seed would have moved a *single* network trained on these rows by this much. The PNC prediction does
        not contain it: it is what was taken out.
    noise : array, shape of the mean
        A single new observation scatters around the function by this much.
    parts : mapping from str to array, shape of the mean
        What ``data`` is the sum of where the interval method adds variances: ``"sampling"``, ``"posterior"``,
        ``"misfit"`` and ``"rival"`` for `TruthInterval`; empty otherwise.
    """

    data: FloatArray
    procedural: FloatArray
    noise: FloatArray
    parts: Mapping[str, FloatArray] = field(default_factory=dict)


@dataclass(frozen=True)
class Calibration:
    """Prediction intervals by leave-one-out errors: the expected size of an error, times a quantile of those seen."""

    expected: FloatArray  # shape of the mean; standard deviation of a new observation, as the model has it
    scores: FloatArray  # (m,) or (m, n_outputs); leave-one-out errors over their expected size, sorted

    def half_width(self, level: float) -> FloatArray:
        """Conformal half width: the ⌈(m + 1) · level⌉-th smallest score, or the largest where that is beyond the last."""
        m = len(self.scores)
        place = math.ceil((m + 1) * level - 1e-9)  # 100 · 0.55 is a little more than 55 in floating point
        if place > m:  # too few rows for this level: the normal law takes over where it is the wider one
            return np.asarray(self.expected * np.maximum(self.scores[-1], two_sided_quantile(level, np.inf)))
        return np.asarray(self.expected * self.scores[place - 1])


@dataclass(frozen=True)
class LeaveOneOut:
    """How well training rows are predicted by networks that were trained on all others.

    Attributes
    ----------
    n_rows : int
        Rows that were looked at, a random thousand of many.
    rmse : array of shape (n_outputs,)
        Root of the mean squared error, in units of y.
    r_squared : array of shape (n_outputs,)
        1 − mean squared error over the variance of y.

    Examples
    --------
    >>> found = LeaveOneOut.of(np.array([[1.0], [2.0], [3.0]]), np.array([[0.1], [-0.1], [0.1]]))
    >>> found.r_squared.round(3).tolist()
    [0.985]
    """

    n_rows: int
    rmse: FloatArray
    r_squared: FloatArray

    @classmethod
    def of(cls, y: FloatArray, errors: FloatArray) -> LeaveOneOut:
        """From observations and their errors, both of shape (n_rows, n_outputs)."""
        mean_square = (errors**2).mean(axis=0)
        spread = np.maximum(y.var(axis=0), np.finfo(np.float64).tiny)
        return cls(len(y), np.sqrt(mean_square), 1.0 - mean_square / spread)


class JointLaw(Protocol):
    """How the errors at the points of a prediction go together, as far as that is known."""

    def covariance(self) -> FloatArray:
        """Shape (n_outputs, n_points, n_points)."""


@dataclass(frozen=True)
class KnownLaw:
    """A joint law as its figures."""

    values: FloatArray  # (n_outputs, n_points, n_points)

    def covariance(self) -> FloatArray:
        """Shape (n_outputs, n_points, n_points)."""
        return self.values


@dataclass(frozen=True)
class Prediction:
    """Predictions with everything needed to draw intervals at any level, without fitting again.

    Attributes
    ----------
    mean, standard_error : array of shape (n_points,) or (n_points, n_outputs)
    degrees_of_freedom : float
        Of the t quantile that multiplies the standard error; infinite for the normal law.
    components : Components
        Variances by source: data, procedural, noise.
    calibration : Calibration or None
        Leave-one-out errors behind `pred_int`; None leaves that to the normal law.
    joint_law : object or None
        How errors at different points go together, for `simultaneous`; None where that is not known.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from unseed import PNCRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> prediction = PNCRegressor(random_state=0).fit(X[:200], y[:200]).get_prediction(X[200:203])
    >>> prediction.conf_int(0.95).shape
    (3, 2)
    """

    mean: FloatArray
    standard_error: FloatArray
    degrees_of_freedom: float
    components: Components
    calibration: Calibration | None = field(default=None, repr=False)
    joint_law: JointLaw | None = field(default=None, repr=False)
    index: Any = field(default=None, repr=False)
    output_names: Sequence[Any] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name in ("mean", "standard_error"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        given = self.components
        parts = {name: _frozen(values) for name, values in given.parts.items()}
        frozen = Components(_frozen(given.data), _frozen(given.procedural), _frozen(given.noise), parts)
        object.__setattr__(self, "components", frozen)

    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Pointwise confidence interval for the function; the last axis holds lower and upper bound."""
        return self._bounds(self._half_width(level))

    def pred_int(self, level: float = 0.95) -> FloatArray:
        """Pointwise interval for one new noisy observation; the last axis holds lower and upper bound.

        With a calibration the half width is conformal: a quantile of leave-one-out errors, never less than that of the
        confidence interval. Without one it is the root of the summed squares of the confidence half width (a t quantile,
        few degrees of freedom) and of the noise's (a normal quantile: its variance is estimated from all rows).
        """
        if self.calibration is not None:
            return self._bounds(np.maximum(self.calibration.half_width(check_level(level)), self._half_width(level)))
        noise = two_sided_quantile(level, np.inf) * np.sqrt(self.components.noise)
        return self._bounds(np.hypot(self._half_width(level), noise))

    def simultaneous(self, level: float = 0.95) -> FloatArray:
        """Confidence band that covers the function at *all* these points at once, output by output.

        The standard errors are multiplied by the quantile of the largest of the points' errors: simulated where their
        covariance is known (the posterior part of `TruthInterval`, the other parts taken as independent; up to 2,000
        points), Bonferroni's bound otherwise. The last axis holds lower and upper bound.
        """
        n_points = len(self.mean)
        pointwise = two_sided_quantile(level, self.degrees_of_freedom)
        bonferroni = two_sided_quantile(1 - (1 - level) / max(n_points, 1), self.degrees_of_freedom)
        quantiles: Any = bonferroni
        is_finite = bool(np.isfinite(self.standard_error).all())
        if self.joint_law is not None and is_finite and 1 < n_points <= MAX_JOINT_POINTS and can_be_simulated(level):
            errors = self.standard_error.reshape(n_points, -1).T  # (n_outputs, n_points)
            laws = zip(self.joint_law.covariance(), errors, strict=True)
            simulated = np.array([quantile_of_largest(*law, level, self.degrees_of_freedom) for law in laws])
            quantiles = np.clip(simulated if self.mean.ndim > 1 else simulated[0], pointwise, bonferroni)
        return self._bounds(quantiles * self.standard_error)

    def summary_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Table of pandas with the columns of statsmodels, one row per point.

        With several outputs the columns have two levels: output, then quantity.
        """
        pandas = pandas_for("summary_frame")
        confidence, observation = self.conf_int(level), self.pred_int(level)
        columns = {
            "mean": self.mean,
            "mean_se": self.standard_error,
            "mean_ci_lower": confidence[..., 0],
            "mean_ci_upper": confidence[..., 1],
            "obs_ci_lower": observation[..., 0],
            "obs_ci_upper": observation[..., 1],
        }
        index = self.index if self.index is not None else pandas.RangeIndex(len(self.mean))
        frame: pd.DataFrame
        if self.mean.ndim == 1:
            frame = pandas.DataFrame(columns, index=index)
            return frame
        names = self.output_names or [f"y{i}" for i in range(self.mean.shape[1])]
        outputs = [{key: value[:, i] for key, value in columns.items()} for i in range(len(names))]
        frame = pandas.concat([pandas.DataFrame(own, index=index) for own in outputs], axis=1, keys=list(names))
        return frame

    def _half_width(self, level: float) -> FloatArray:
        return two_sided_quantile(level, self.degrees_of_freedom) * self.standard_error

    def _bounds(self, half_width: FloatArray) -> FloatArray:
        return np.stack([self.mean - half_width, self.mean + half_width], axis=-1)
