"""A regressor under any loss: what changes where the loss bends, and answers are made on the scale of its link."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import column_or_1d

from unseed._estimators.bent import BentTraining, check_bent, train_bent
from unseed._estimators.growing import GrowingRegressor
from unseed._estimators.training import MeanOption, TrainingData, mean_of_starts
from unseed._predictors import PNCReplicates
from unseed._responses import ResponsePrediction, mapped, on_response
from unseed._results import Estimate, FloatArray, Prediction
from unseed._state import Record
from unseed.engines import Engine
from unseed.errors import InvalidInputError
from unseed.intervals import IntervalMethod
from unseed.losses import Loss, is_bent, is_location, resolve_loss
from unseed.networks import MLP, InitialMean


@dataclass(kw_only=True, eq=False, repr=False)
class LossRegressor(GrowingRegressor):
    """A growing regressor with a loss; one that bends is trained by Newton's steps."""

    engine: str | Engine = "kernel"
    initial_mean: MeanOption = "zero"
    n_jobs: int | None = None
    loss: str | Loss = "squared"

    loss_: Loss = field(init=False)
    _replicates: PNCReplicates = field(init=False)

    @property
    def _bends(self) -> bool:
        return is_bent(self._link)

    @property
    def _link(self) -> Loss:
        return resolve_loss(self.loss)

    @property
    def _has_own_scale(self) -> bool:
        """Whether labels are on another scale than what networks predict."""
        return self._bends and not is_location(self._link)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = not self._bends
        tags.target_tags.positive_only = not bool(self._link.legal(torch.tensor([-1.0])))
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Train; see `PNCRegressor`. Under a loss that bends, a single column of labels is taken as one, with a warning."""
        is_column = self._bends and np.asarray(y).shape[1:] == (1,)
        return super().fit(X, column_or_1d(y, warn=True) if is_column else y)

    def _check_loss(self, engine: Engine) -> None:
        loss = resolve_loss(self.loss)
        if not is_bent(loss):
            return
        check_bent(loss, engine, self.regularization)
        if loss.is_joint:
            raise InvalidInputError(f"loss={loss.name!r} is for classes; use PNCClassifier()")
        if callable(self.initial_mean) and not is_location(loss):
            raise InvalidInputError(
                f"initial_mean={self.initial_mean!r} is a function in units of y, and loss={loss.name!r} predicts on another "
                "scale; use initial_mean='zero'"
            )
        if getattr(self, "noise", "auto") == "varying":
            raise InvalidInputError(f"noise='varying' is for loss='squared'; loss={loss.name!r} says itself how y varies")

    def _train_bent(self, engine: Engine, method: IntervalMethod, data: TrainingData) -> BentTraining:
        loss = resolve_loss(self.loss)
        if data.y.shape[1] > 1:
            raise InvalidInputError(
                f"y has {data.y.shape[1]} columns, and loss={loss.name!r} takes one; fit a regressor for each column"
            )

        def mean_of(network: MLP, rows: TrainingData) -> InitialMean:
            return mean_of_starts(self.initial_mean, engine, network, rows)

        return train_bent(self, engine, method, loss, data, np.ones(len(data.X)), mean_of)

    def _loss_of_task(self, record: Record) -> Loss:
        """In the networks' units, from what was kept."""
        asked = resolve_loss(self.loss)
        self.loss_ = record.option("loss", Loss) if "loss" in record.facts else asked
        if not is_bent(asked):
            return asked
        unit = float(record.part("scaling").array("y_scale", None)[0])
        return self.loss_.rescaled(unit) or self.loss_

    def _begun(self, *args: Any, **kwargs: Any) -> Any:
        if self._bends:
            raise InvalidInputError(
                f"loss={resolve_loss(self.loss).name!r} holds all rows at once so far: use solver='exact' with at most 10,000 "
                "rows, or as many as memory has room for"
            )
        return super()._begun(*args, **kwargs)

    def _rows_that_are_held(self) -> tuple[FloatArray, FloatArray] | None:
        held = super()._rows_that_are_held()
        if held is None or self._held is not None or self._task is None or not self._has_own_scale:
            return held
        return held[0], self._task.labels[:, 0].cpu().numpy()

    def _estimate(self, X: FloatArray) -> Estimate:
        found = super()._estimate(X)
        return on_response(self._link, found) if self._has_own_scale else found

    def _centre(self, X: FloatArray) -> FloatArray:
        found = super()._centre(X)
        return mapped(self._link, found) if self._has_own_scale else found

    def _answered(self, prediction: Prediction) -> Prediction:
        if not self._bends:
            return prediction
        known, trained = self._link.dispersion, self._replicates.trained
        if known is None:  # networks of all rows have one
            known = getattr(trained, "dispersion", np.nan) if self._replicates.has_posterior else np.nan
        return ResponsePrediction.of(prediction, self._link, float(known))

    def _noise_chunk(self, asked: Any) -> FloatArray:
        if self._has_own_scale:
            return np.full(1, np.nan)
        return np.asarray(asked.noise_variance())
