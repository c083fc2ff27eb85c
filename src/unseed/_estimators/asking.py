"""What all PNC estimators know of their replicates: what training came to, and questions to one query."""

from __future__ import annotations

from typing import Any, ClassVar

from unseed._law import JointLaw
from unseed._predictors import PNCQuery, PNCReplicates, PosteriorLaw
from unseed._random import Streams
from unseed._results import MAX_JOINT_POINTS, FloatArray
from unseed._selection import Choice, Selection
from unseed.engines import Engine
from unseed.intervals import IntervalMethod, own_centre

_PROBES = 50


class AskingReplicates:
    """Of estimators whose `_replicates` are PNC predictors."""

    _chosen: ClassVar[dict[str, tuple[Any, ...]]] = {
        **{"interval": (IntervalMethod,), "engine": (Engine,)},
        **{"network": (), "regularization": (int, float), "selection": (Selection, type(None))},
    }
    _replicates: PNCReplicates
    interval_: IntervalMethod

    def _keep(self, method: IntervalMethod, engine: Engine, choice: Choice, X: FloatArray, streams: Streams) -> None:
        # Where `diagnose` looks: half-way between rows, since at the rows themselves an interpolating fit is perfect.
        pairs = streams.generator("probe").integers(len(X), size=(2, _PROBES))
        self._probe = (X[pairs[0]] + X[pairs[1]]) / 2
        self.interval_, self.engine_, self.network_ = method, engine, choice.network
        self.regularization_, self.selection_ = choice.regularization, choice.selection

    def _shares_work(self) -> bool:
        return bool(self.interval_.uses_posterior or self.interval_.uses_influence)

    def _centre_chunk(self, asked: PNCQuery) -> FloatArray:
        own = own_centre(self.interval_)
        return asked.centre() if own is None else own(asked, asked.X)

    def _joint_law(self, X: FloatArray) -> JointLaw | None:
        is_known = self.interval_.uses_posterior and len(X) <= MAX_JOINT_POINTS
        return PosteriorLaw(self._replicates, X) if is_known else None

    def _some_points(self, n_points: int) -> FloatArray:
        return self._replicates.checked.X[:n_points]
