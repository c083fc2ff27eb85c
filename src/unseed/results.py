"""What an interval method hands over (`Estimate`) and what a user holds (`Prediction`): frozen, any level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from unseed.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]


def check_level(level: float, name: str = "level") -> float:
    """Return a confidence level strictly between 0 and 1, or say why it cannot be one.

    Examples
    --------
    >>> check_level(0.9)
    0.9
    """
    is_number = isinstance(level, (int, float, np.integer, np.floating)) and not isinstance(level, bool)
    if not is_number or not 0.0 < level < 1.0:
        raise InvalidInputError(
            f"{name}={level!r} is not a confidence level; give a number strictly between 0 and 1, such as 0.95"
        )
    return float(level)


def two_sided_quantile(level: float, degrees_of_freedom: float) -> float:
    """Quantile q with P(|T| <= q) = level for Student's t, or the normal law at infinite degrees of freedom.

    Computed from the upper tail, so that a level close to 1 keeps all its digits.
    """
    upper_tail = (1.0 - check_level(level)) / 2.0
    if np.isinf(degrees_of_freedom):
        return float(stats.norm.isf(upper_tail))
    return float(stats.t.isf(upper_tail, degrees_of_freedom))


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
    """

    centre: FloatArray
    standard_error: FloatArray
    degrees_of_freedom: float


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
    """

    data: FloatArray
    procedural: FloatArray
    noise: FloatArray


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
    index: Any = field(default=None, repr=False)
    output_names: Sequence[Any] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name in ("mean", "standard_error"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        frozen = Components(*(_frozen(values) for values in vars(self.components).values()))
        object.__setattr__(self, "components", frozen)

    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Pointwise confidence interval for the function; the last axis holds lower and upper bound."""
        return self._bounds(self._half_width(level))

    def pred_int(self, level: float = 0.95) -> FloatArray:
        """Pointwise interval for one new noisy observation; the last axis holds lower and upper bound.

        The half width is the root of the summed squares of the confidence half width (a t quantile, few degrees of
        freedom) and of the noise's (a normal quantile: its variance is estimated from all rows).
        """
        noise = two_sided_quantile(level, np.inf) * np.sqrt(self.components.noise)
        return self._bounds(np.hypot(self._half_width(level), noise))

    def summary_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Table of pandas with the columns of statsmodels, one row per point.

        With several outputs the columns have two levels: output, then quantity.
        """
        try:
            import pandas as pd
        except ImportError as missing:
            raise ImportError("summary_frame needs pandas; install it with: pip install 'unseed[frames]'") from missing
        confidence, observation = self.conf_int(level), self.pred_int(level)
        columns = {
            "mean": self.mean,
            "mean_se": self.standard_error,
            "mean_ci_lower": confidence[..., 0],
            "mean_ci_upper": confidence[..., 1],
            "obs_ci_lower": observation[..., 0],
            "obs_ci_upper": observation[..., 1],
        }
        index = self.index if self.index is not None else pd.RangeIndex(len(self.mean))
        if self.mean.ndim == 1:
            return pd.DataFrame(columns, index=index)
        names = self.output_names or [f"y{i}" for i in range(self.mean.shape[1])]
        frames = [pd.DataFrame({key: value[:, i] for key, value in columns.items()}, index=index) for i in range(len(names))]
        return pd.concat(frames, axis=1, keys=list(names))

    def _half_width(self, level: float) -> FloatArray:
        return two_sided_quantile(level, self.degrees_of_freedom) * self.standard_error

    def _bounds(self, half_width: FloatArray) -> FloatArray:
        return np.stack([self.mean - half_width, self.mean + half_width], axis=-1)


@dataclass(frozen=True)
class Finding:
    """One thing that the theory needs, how it stands here, and what to do about it.

    Attributes
    ----------
    name : str
    value : float
        The figure looked at.
    limit : float
        What it should stay below.
    advice : str
        One sentence, for when it does not.
    """

    name: str
    value: float
    limit: float
    advice: str

    @property
    def holds(self) -> bool:
        """Whether the figure is below its limit (NaN is not)."""
        return self.value < self.limit


@dataclass(frozen=True)
class Diagnosis:
    """Whether the theory's ground is there; prints as a short table.

    Attributes
    ----------
    findings : tuple of Finding

    Examples
    --------
    >>> print(Diagnosis((Finding("condition number", 1e3, 1e12, "raise regularization"),)))
    ok    condition number                                  1e+03  (should be below 1e+12)
    """

    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What does not hold."""
        return tuple(finding for finding in self.findings if not finding.holds)

    def __str__(self) -> str:
        lines = []
        for finding in self.findings:
            mark = "ok   " if finding.holds else "CHECK"
            line = f"{mark} {finding.name:45} {finding.value:9.2g}  (should be below {finding.limit:.2g})"
            lines.append(line if finding.holds else f"{line}: {finding.advice}")
        return "\n".join(lines)
