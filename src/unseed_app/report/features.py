"""What features do to a prediction and its uncertainty, asked by changing one at a time."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unseed._results import FloatArray
from unseed_app.report.held_out import HeldOut, Indices

MOST_BANDS, MOST_SHOWN = 6, 12
_GRID, _COARSE_GRID, _FEW_VALUES, _BINS = 41, 5, 10, 40
_MOST_ANSWERS, _FEWEST_ANSWERS, _WORK = 20_000, 600, 2e10
_MANY_FEATURES = 500  # above, curves of all of them would take too long
_NUMBERS_AT_A_TIME = 1 << 24  # of rows that are made up
_MANY_ROWS = 4000  # above, fewer features are kept for each row
_MOST_REASONS, _SMALLEST_SAVING = 3, 0.05
_TINY = float(np.finfo(np.float64).tiny)

Reason = tuple[int, float]
"""Position of a feature among those shown, and the share of the standard error that a typical value of it would save."""


@dataclass(frozen=True)
class Band:
    """Prediction and confidence interval along one feature, the others held at typical values."""

    feature: int  # its position among those shown
    values: FloatArray  # (n_values,), as are mean, low and high
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    is_discrete: bool  # whether ``values`` are all there are
    histogram: npt.NDArray[np.intp]  # rows of the report per bin, from the first value to the last


@dataclass(frozen=True)
class Features:
    """What the features of rows do, for every output; ``errors`` are the standard errors there, (n_rows, n_outputs)."""

    estimator: Any
    rows: HeldOut
    level: float
    errors: FloatArray

    @cached_property
    def typical(self) -> FloatArray:
        """A row with the median of each number and the most frequent level of each category. Shape (n_columns,)."""
        row = np.zeros((1, self.rows.X.shape[1]))
        for feature in self.rows.features:
            feature.put(row, feature.typical(self.rows.X))
        return np.asarray(row[0])

    @cached_property
    def by_relevance(self) -> tuple[Indices, str]:
        """Features that vary, most relevant first, and how that was found."""
        features, X = self.rows.features, self.rows.X
        if not features:  # rows that are not lines of features
            return np.zeros(0, dtype=np.intp), ""
        scales = getattr(self.estimator.network_, "input_scale", None)
        if scales is not None and len(set(scales)) > 1:
            strength = np.array([max(scales[column] for column in feature.columns) for feature in features])
            how = "their relevance in the network that was chosen or given"
        elif len(features) > _MANY_FEATURES:
            strength, how = self._correlations(), "how closely each goes along with the prediction"
        else:
            strength, how = self._ranges_of_curves(), "how far each moves the prediction over its range"
        varies = np.array([np.ptp(feature.values(X)) > 0 for feature in features])
        order = np.argsort(-strength, kind="stable")
        return order[varies[order]][: MOST_SHOWN if len(X) <= _MANY_ROWS else MOST_BANDS], how

    @cached_property
    def bands(self) -> list[list[Band]]:
        """Along each of the most relevant features, for each output."""
        return [self._band(position, feature) for position, feature in enumerate(self.by_relevance[0][:MOST_BANDS])]

    @cached_property
    def explained(self) -> Indices:
        """Rows that `reasons` are about, the least certain first: as many as can be asked about in seconds."""
        if not self.rows.features:
            return np.zeros(0, dtype=np.intp)
        affordable = np.clip(_WORK / self.estimator.n_rows_**2, _FEWEST_ANSWERS, _MOST_ANSWERS)
        n_answers = int(min(affordable, _NUMBERS_AT_A_TIME / self.rows.X.shape[1]))
        relative = self.errors / np.maximum(np.median(self.errors, axis=0), _TINY)
        n_explained = n_answers // max(len(self.by_relevance[0]), 1)
        return np.argsort(-relative.max(axis=1), kind="stable")[:n_explained]

    @cached_property
    def savings(self) -> FloatArray:
        """Share of the standard errors of `explained` rows that a typical value of each feature shown would save.

        Shape (n_explained, n_shown, n_outputs).
        """
        shown, errors = self.by_relevance[0], self.errors[self.explained]
        if not len(shown):
            return np.zeros((len(errors), 0, errors.shape[1]))
        changed = np.repeat(self.rows.X[self.explained][:, None], len(shown), axis=1)  # (m, n_shown, n_columns)
        for j, place in enumerate(shown):
            columns = list(self.rows.features[place].columns)
            changed[:, j, columns] = self.typical[columns]
        _, found = self._ask("predict", changed.reshape(-1, changed.shape[2]), return_std=True)
        return np.asarray(1 - np.reshape(found, (*changed.shape[:2], -1)) / np.maximum(errors[:, None], _TINY))

    def reasons(self, output: int) -> Mapping[int, tuple[Reason, ...]]:
        """For each explained row, the features whose change would help most, the shares with three digits."""
        found = {}
        for row, shares in zip(self.explained, self.savings[..., output], strict=True):
            order = np.argsort(-shares, kind="stable")[:_MOST_REASONS]
            found[int(row)] = tuple((int(j), float(f"{shares[j]:.3g}")) for j in order if shares[j] >= _SMALLEST_SAVING)
        return found

    def _band(self, position: int, place: int) -> list[Band]:
        """One for each output."""
        feature = self.rows.features[place]
        there = feature.values(self.rows.X)
        values = np.unique(there)
        is_discrete = bool(feature.levels) or len(values) <= _FEW_VALUES
        if not is_discrete:
            values = np.linspace(values[0], values[-1], _GRID)
        mean, bounds = self._ask("predict_interval", self._points(place, values), self.level)
        counts, _ = np.histogram(there, bins=_BINS, range=(values[0], values[-1]))
        lows, highs = bounds.reshape(len(values), -1, 2).T
        columns = zip(mean.reshape(len(values), -1).T, lows, highs, strict=True)
        return [Band(position, values, *column, is_discrete, counts) for column in columns]

    def _correlations(self) -> FloatArray:
        """Largest correlation, either way, of a column of each feature with a prediction of the rows."""
        predicted = np.reshape(self._ask("predict", self.rows.X), (len(self.rows.X), -1))
        strength = np.abs(_standardised(self.rows.X).T @ _standardised(predicted)).max(axis=1)
        return np.array([strength[list(feature.columns)].max() for feature in self.rows.features])

    def _ranges_of_curves(self) -> FloatArray:
        grids = [feature.grid(self.rows.X, _COARSE_GRID) for feature in self.rows.features]
        points = np.concatenate([self._points(place, grid) for place, grid in enumerate(grids)])
        predicted = np.reshape(self._ask("predict", points), (len(points), -1))
        curves = np.split(predicted, np.cumsum([len(grid) for grid in grids])[:-1])
        ranges = np.array([np.ptp(curve, axis=0) for curve in curves])  # (n_features, n_outputs)
        return np.asarray((ranges / np.maximum(ranges.max(axis=0), _TINY)).max(axis=1))

    def _points(self, place: int, values: FloatArray) -> FloatArray:
        """Typical rows but for one feature."""
        points = np.repeat(self.typical[None], len(values), axis=0)
        self.rows.features[place].put(points, values)
        return points

    def _ask(self, method: str, points: FloatArray, *arguments: Any, **options: Any) -> Any:
        """Rows made here are arrays in the order of the fit; scikit-learn need not warn that they have no names."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names", category=UserWarning)
            return getattr(self.estimator, method)(points, *arguments, **options)


def _standardised(values: FloatArray) -> FloatArray:
    centred = values - values.mean(axis=0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), _TINY))
