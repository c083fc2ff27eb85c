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
    def by_relevance(self) -> tuple[Indices, str]:
        """Features that vary, most relevant first, and how that was found."""
        features, n_rows = self.rows.features, len(self.rows.X)
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
        order = np.argsort(-strength, kind="stable")
        order = order[np.ptp(self.rows.values, axis=0)[order] > 0]
        return order[: MOST_SHOWN if n_rows <= _MANY_ROWS else MOST_BANDS], how

    @cached_property
    def bands(self) -> list[list[Band]]:
        """Along each of the most relevant features, for each output."""
        return [self._band(position, place) for position, place in enumerate(self.by_relevance[0][:MOST_BANDS])]

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
        changed = np.repeat(self.rows.values[self.explained][:, None], len(shown), axis=1)  # (m, n_shown, n_features)
        changed[:, np.arange(len(shown)), shown] = self.rows.typical[shown]
        _, found = self._ask("predict", changed, return_std=True)
        return np.asarray(1 - found / np.maximum(errors[:, None], _TINY))

    def reasons(self, output: int) -> Mapping[int, tuple[Reason, ...]]:
        """For each explained row, the features whose change would help most, the shares with three digits."""
        found = {}
        for row, shares in zip(self.explained, self.savings[..., output], strict=True):
            order = np.argsort(-shares, kind="stable")[:_MOST_REASONS]
            found[int(row)] = tuple((int(j), float(f"{shares[j]:.3g}")) for j in order if shares[j] >= _SMALLEST_SAVING)
        return found

    def _band(self, position: int, place: int) -> list[Band]:
        """One for each output."""
        there = self.rows.values[:, place]
        values = np.unique(there)
        is_discrete = bool(self.rows.features[place].levels) or len(values) <= _FEW_VALUES
        if not is_discrete:
            values = np.linspace(values[0], values[-1], _GRID)
        mean, bounds = self._ask("predict_interval", self._along(place, values), self.level)
        counts, _ = np.histogram(there, bins=_BINS, range=(values[0], values[-1]))
        lows, highs = bounds.reshape(len(values), -1, 2).T
        return [Band(position, values, *column, is_discrete, counts) for column in zip(mean.T, lows, highs, strict=True)]

    def _correlations(self) -> FloatArray:
        """Largest correlation, either way, of a column of each feature with a prediction of the rows."""
        (predicted,) = self._ask("predict", self.rows.values)
        strength = np.abs(_standardised(self.rows.X).T @ _standardised(predicted)).max(axis=1)
        return np.array([strength[list(feature.columns)].max() for feature in self.rows.features])

    def _ranges_of_curves(self) -> FloatArray:
        quantiles = np.quantile(self.rows.values, np.linspace(0, 1, _COARSE_GRID), axis=0).T
        pairs = zip(self.rows.features, self.rows.values.T, quantiles, strict=True)
        grids = [np.unique(values) if feature.levels else coarse for feature, values, coarse in pairs]
        (predicted,) = self._ask("predict", np.concatenate([self._along(place, grid) for place, grid in enumerate(grids)]))
        curves = np.split(predicted, np.cumsum([len(grid) for grid in grids])[:-1])
        ranges = np.array([np.ptp(curve, axis=0) for curve in curves])  # (n_features, n_outputs)
        return np.asarray((ranges / np.maximum(ranges.max(axis=0), _TINY)).max(axis=1))

    def _along(self, place: int, values: FloatArray) -> FloatArray:
        """Typical values but for one feature."""
        points = np.repeat(self.rows.typical[None], len(values), axis=0)
        points[:, place] = values
        return points

    def _ask(self, method: str, values: FloatArray, *arguments: Any, **options: Any) -> list[FloatArray]:
        """What the estimator answers at rows with these features, outputs last; it need not warn that rows have no names."""
        rows = self.rows.rows_with(values.reshape(-1, values.shape[-1]))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names", category=UserWarning)
            answers = getattr(self.estimator, method)(rows, *arguments, **options)
        return [np.reshape(one, (*values.shape[:-1], -1)) for one in (answers if isinstance(answers, tuple) else [answers])]


def _standardised(values: FloatArray) -> FloatArray:
    centred = values - values.mean(axis=0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), _TINY))
