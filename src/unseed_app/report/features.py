"""What features do to a prediction and its uncertainty, asked by changing one at a time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unseed._results import FloatArray
from unseed.networks import MLP
from unseed_app.report.held_out import Feature

MOST_BANDS, MOST_SHOWN = 6, 12
_GRID, _COARSE_GRID, _FEW_VALUES, _BINS = 41, 5, 10, 40
_MOST_ANSWERS, _FEWEST_ANSWERS, _WORK = 20_000, 600, 2e10
_MANY_FEATURES = 500  # above, curves of all of them would take too long
_NUMBERS_AT_A_TIME = 1 << 24  # of rows that are made up
_MANY_ROWS = 4000  # above, fewer features are kept for each row
_MOST_REASONS, _SMALLEST_SAVING = 3, 0.05
_TINY = float(np.finfo(np.float64).tiny)

Indices = npt.NDArray[np.intp]
Reason = tuple[int, float]
"""Position of a feature among those shown, and the share of the standard error that a typical value of it would save."""


@dataclass(frozen=True)
class Band:
    """Prediction and confidence interval along one feature, the others held at typical values.

    Attributes
    ----------
    feature : int
    values, mean, low, high : array of shape (n_values,)
    is_discrete : bool
        Whether ``values`` are all there are.
    histogram : array
        Rows of the report per bin, from the first value to the last.
    """

    feature: int
    values: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    is_discrete: bool
    histogram: npt.NDArray[np.intp]


@dataclass(frozen=True)
class Answers:
    """What features do, for every output.

    Attributes
    ----------
    shown : array of int
        Features that vary, most relevant first.
    order : str
        How relevance was found.
    bands : tuple, for each of the first few shown features, of one Band for each output
    explained : array of shape (m,)
        Rows, the least certain first, that ``savings`` are about.
    savings : array of shape (m, n_shown, n_outputs)
        1 − standard error with a typical value of the feature / standard error.
    """

    shown: Indices
    order: str
    bands: tuple[list[Band], ...]
    explained: Indices
    savings: FloatArray

    def bands_of(self, output: int) -> tuple[Band, ...]:
        """Along each feature."""
        return tuple(band[output] for band in self.bands)

    def reasons_of(self, output: int) -> dict[int, tuple[Reason, ...]]:
        """For each explained row, the features whose change would help most."""
        return {int(row): _strongest(shares[:, output]) for row, shares in zip(self.explained, self.savings, strict=True)}


@dataclass(frozen=True)
class Features:
    """A fitted estimator and the rows of a report, to be asked what features do.

    Attributes
    ----------
    estimator : fitted estimator of unseed
    X : array of shape (n_rows, n_columns)
    features : tuple of Feature
    level : float
    """

    estimator: Any
    X: FloatArray
    features: tuple[Feature, ...]
    level: float

    @cached_property
    def typical(self) -> FloatArray:
        """A row with the median of each number and the most frequent level of each category. Shape (n_columns,)."""
        row = np.zeros((1, self.X.shape[1]))
        for feature in self.features:
            feature.put(row, feature.typical(self.X))
        return np.asarray(row[0])

    def ask(self, errors: FloatArray) -> Answers:
        """Bands of the most relevant features, and what makes the least certain rows uncertain.

        ``errors`` are the standard errors at the rows, of shape (n_rows, n_outputs).
        """
        if not self.features:  # rows that are not lines of features
            nothing = np.zeros(0, dtype=np.intp)
            return Answers(nothing, "", (), nothing, np.zeros((0, 0, errors.shape[1])))
        shown, order = self.by_relevance()
        bands = tuple(self.band(int(feature)) for feature in shown[:MOST_BANDS])
        relative = errors / np.maximum(np.median(errors, axis=0), _TINY)
        n_explained = self._affordable_answers() // max(len(shown), 1)
        explained = np.argsort(-relative.max(axis=1), kind="stable")[:n_explained]
        return Answers(shown, order, bands, explained, self.savings(explained, errors[explained], shown))

    def by_relevance(self) -> tuple[Indices, str]:
        """Features that vary, most relevant first, and how that was found."""
        varies = np.array([np.ptp(feature.values(self.X)) > 0 for feature in self.features])
        network = getattr(self.estimator, "network_", None)
        scales = network.input_scale if isinstance(network, MLP) else None
        if scales is not None and len(set(scales)) > 1:
            strength = np.array([max(scales[column] for column in feature.columns) for feature in self.features])
            how = "their relevance in the network that was chosen or given"
        elif len(self.features) > _MANY_FEATURES:
            strength, how = self._correlations(), "how closely each goes along with the prediction"
        else:
            strength, how = self._ranges_of_curves(), "how far each moves the prediction over its range"
        order = np.argsort(-strength, kind="stable")
        n_shown = MOST_SHOWN if len(self.X) <= _MANY_ROWS else MOST_BANDS
        return order[varies[order]][:n_shown], how

    def band(self, place: int) -> list[Band]:
        """One for each output."""
        feature = self.features[place]
        values = np.unique(feature.values(self.X))
        is_discrete = bool(feature.levels) or len(values) <= _FEW_VALUES
        if not is_discrete:
            values = np.linspace(values[0], values[-1], _GRID)
        mean, bounds = self._ask("predict_interval", self._with(feature, values), self.level)
        bounds = bounds.reshape(len(values), -1, 2)
        counts, _ = np.histogram(feature.values(self.X), bins=_BINS, range=(values[0], values[-1]))
        columns = zip(mean.reshape(len(values), -1).T, bounds[..., 0].T, bounds[..., 1].T, strict=True)
        return [Band(place, values, *column, is_discrete, counts) for column in columns]

    def savings(self, rows: Indices, errors: FloatArray, shown: Indices) -> FloatArray:
        """How much smaller the standard errors of rows would be with a typical value of each feature.

        Shape (n_rows, n_shown, n_outputs).
        """
        changed = np.repeat(self.X[rows][:, None], len(shown), axis=1)  # (m, n_shown, n_columns)
        for j, place in enumerate(shown):
            columns = list(self.features[place].columns)
            changed[:, j, columns] = self.typical[columns]
        if changed.size == 0:
            return np.zeros((len(rows), len(shown), errors.shape[1]))
        _, found = self._ask("predict", changed.reshape(-1, self.X.shape[1]), return_std=True)
        found = np.asarray(found).reshape(len(rows), len(shown), -1)
        return np.asarray(1 - found / np.maximum(errors[:, None], _TINY))

    def _affordable_answers(self) -> int:
        """Predictions that take seconds at most: each costs the square of the training rows."""
        n_training = getattr(self.estimator, "n_rows_", 1000)
        affordable = np.clip(_WORK / n_training**2, _FEWEST_ANSWERS, _MOST_ANSWERS)
        return int(min(affordable, _NUMBERS_AT_A_TIME / self.X.shape[1]))

    def _correlations(self) -> FloatArray:
        """Largest correlation, either way, of a column of each feature with a prediction of the rows."""
        predicted = np.asarray(self._ask("predict", self.X)).reshape(len(self.X), -1)
        columns, outputs = _standardised(self.X), _standardised(predicted)
        strength = np.abs(columns.T @ outputs).max(axis=1)
        return np.array([strength[list(feature.columns)].max() for feature in self.features])

    def _ranges_of_curves(self) -> FloatArray:
        grids = [feature.grid(self.X, _COARSE_GRID) for feature in self.features]
        points = np.concatenate([self._with(feature, grid) for feature, grid in zip(self.features, grids, strict=True)])
        predicted = np.asarray(self._ask("predict", points)).reshape(len(points), -1)
        curves = np.split(predicted, np.cumsum([len(grid) for grid in grids])[:-1])
        ranges = np.array([np.ptp(curve, axis=0) for curve in curves])  # (n_features, n_outputs)
        return np.asarray((ranges / np.maximum(ranges.max(axis=0), _TINY)).max(axis=1))

    def _ask(self, method: str, points: FloatArray, *arguments: Any, **options: Any) -> Any:
        """Rows made here are arrays in the order of the fit; scikit-learn need not warn that they have no names."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names", category=UserWarning)
            return getattr(self.estimator, method)(points, *arguments, **options)

    def _with(self, feature: Feature, values: FloatArray) -> FloatArray:
        """Typical rows but for one feature."""
        points = np.repeat(self.typical[None], len(values), axis=0)
        feature.put(points, values)
        return points


def _standardised(values: FloatArray) -> FloatArray:
    centred = values - values.mean(axis=0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), _TINY))


def _strongest(shares: FloatArray) -> tuple[Reason, ...]:
    order = np.argsort(-shares, kind="stable")[:_MOST_REASONS]
    return tuple((int(j), float(shares[j])) for j in order if shares[j] >= _SMALLEST_SAVING)
