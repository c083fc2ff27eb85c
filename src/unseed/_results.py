"""What an interval method hands over (`Estimate`) and what a user holds (`Prediction`): frozen, any level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unseed._checks import check_level as check_level
from unseed._checks import check_whole_number, is_number
from unseed._frames import pandas_for
from unseed._law import JointLaw, Law
from unseed._quantiles import can_be_simulated, quantile_of_largest
from unseed._quantiles import two_sided_quantile as two_sided_quantile
from unseed._random import RandomState, Streams
from unseed._shapes import Smoothed, Student, Sum
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
    """A new y by leave-one-out errors: how large they are expected to be, and how large those seen were relative to that."""

    expected: FloatArray  # shape of the mean; standard deviation of a new observation, as the model has it
    scores: FloatArray  # (m,) or (m, n_outputs); sizes of leave-one-out errors over what was expected, sorted

    @property
    def shapes(self) -> tuple[Smoothed, ...]:
        """Of the law of a new y around its expected size, output by output."""
        return tuple(Smoothed(np.asarray(column)) for column in self.scores.reshape(len(self.scores), -1).T)


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
        Leave-one-out errors behind the law of a new y; None leaves that to Student's t.
    joint_law : object or None
        How errors at different points go together, for `simultaneous`; None where that is not known.
    noise_degrees_of_freedom : float
        Of the noise variance, where there is no calibration: where they are those of the mean, one scale is behind both.

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
    noise_degrees_of_freedom: float = field(default=np.inf, repr=False)

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

        Its ends are quantiles of the law of a new y: `quantile` of (1 − level)/2 and of (1 + level)/2.
        """
        return self._bounds(self._law.reach((1.0 - check_level(level)) / 2))

    def quantile(self, q: float | Sequence[float]) -> FloatArray:
        """Values that a new observation stays below with these chances.

        The law of a new y is centred at the mean. With a calibration its scale is what the model expects an error to be,
        and its shape that of leave-one-out errors relative to what was expected of them: smoothed, of either sign alike, and
        with the chance of 1/(m + 1) beyond all m of them that exchangeable errors have; it is no narrower than what 95 % of the
        confidence interval take. Without one it is Student's t for the
        function plus a normal law for the noise; or one Student's t for both, where both are known by one scale.

        Parameters
        ----------
        q : float or sequence of float
            From 0 to 1.

        Returns
        -------
        array, shape of the mean, or with a last axis for several q
        """
        asked = np.asarray(q, dtype=object)
        if asked.ndim > 1 or not all(is_number(one) and 0 <= one <= 1 for one in asked.flat):
            raise InvalidInputError(f"q={q!r} must be numbers from 0 to 1")
        found = [self._law.quantile(float(one)) for one in asked.flat]
        return found[0] if asked.ndim == 0 else np.stack(found, axis=-1)

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """Chance that a new observation is at most y, a number or one for each mean (more are along first axes)."""
        return self._law.cdf(self._observed(y))

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Logarithm of the density of a new observation at y, a number or one for each mean."""
        return self._law.log_density(self._observed(y))

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """Continuous ranked probability score of observations y, in their units: the smaller, the better they were foretold."""
        return self._law.crps(self._observed(y))

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draw new observations, independently from point to point. Shape (n, ...), the rest that of the mean."""
        generator = Streams.from_random_state(random_state).generator("new observations")
        return self._law.sample(check_whole_number("n", n, at_least=1), generator)

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

    @cached_property
    def _law(self) -> Law:
        """Of a new observation."""
        if self.calibration is not None:
            shapes = self.calibration.shapes
            reach = np.array([-float(shape.lower_quantile(0.025)) for shape in shapes])  # of 95 %, where intervals are read
            of_mean = two_sided_quantile(0.95, self.degrees_of_freedom) / np.maximum(reach, 1e-6) * self.standard_error
            return Law(self.mean, np.maximum(self.calibration.expected, of_mean), shapes)
        scale = np.hypot(self.standard_error, np.sqrt(self.components.noise))
        if self.noise_degrees_of_freedom == self.degrees_of_freedom:
            return Law(self.mean, scale, (Student(np.array(self.degrees_of_freedom)),))
        share = np.divide(self.standard_error, scale, out=np.ones_like(scale), where=np.isfinite(scale) & (scale > 0))
        return Law(self.mean, scale, (Sum(self.degrees_of_freedom, share),))

    def _observed(self, y: npt.ArrayLike) -> FloatArray:
        try:
            values = np.asarray(y, dtype=np.float64)
            np.broadcast_shapes(values.shape, self.mean.shape)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"y must be numbers, one for each mean of shape {self.mean.shape}, or one for all ({error})"
            ) from error
        return values

    def _half_width(self, level: float) -> FloatArray:
        return two_sided_quantile(level, self.degrees_of_freedom) * self.standard_error

    def _bounds(self, half_width: FloatArray) -> FloatArray:
        return np.stack([self.mean - half_width, self.mean + half_width], axis=-1)
