"""The baselines, with the same face as `PNCRegressor`: single network, deep ensemble, Monte Carlo dropout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch

from unseed import _resampling as resampling
from unseed._checks import check_share, check_whole_number
from unseed._estimators.regressor import IntervalRegressor
from unseed._estimators.training import TrainingData, choose, is_module, restore_networks
from unseed._predictors import DropoutNetwork, EnsembleQuery, EnsembleReplicates, train_dropout, with_members
from unseed._results import Estimate, FloatArray
from unseed._scaling import Scaling
from unseed._selection import Choice
from unseed._solvers import GradientDescent, Objective
from unseed._state import Record, State
from unseed.engines import Engine, Task, resolve_engine
from unseed.errors import InvalidInputError
from unseed.intervals import IntervalMethod, resolve_interval
from unseed.losses import Squared
from unseed.networks import MLP, make_batch


@dataclass(kw_only=True, eq=False, repr=False)
class DeepEnsembleRegressor(IntervalRegressor):
    """Average of a few networks trained from different seeds.

    Its usual interval, mean ± z times the members' standard deviation, is about the seed and not about the data. With an
    interval method instead, every resample trains a whole ensemble: the naive bootstrap on a deep ensemble.

    Parameters
    ----------
    members : int, default=5
    interval : "members", interval method or None, default="members"
        ``"members"`` spreads by the members' standard deviation; ``"cheap_bootstrap"`` and the others resample the data;
        None trains nothing else and has predictions without intervals.
    engine : {"network", "linearized"} or engine, default="network"
    network, regularization, standardize, random_state, n_jobs, device, verbose
        As for `PNCRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = DeepEnsembleRegressor(members=3, network=MLP(width=64), regularization=0.1, random_state=0)
    >>> reg.fit(X[:60], y[:60]).predict_interval(X[60:65])[1].shape
    (5, 2, 1)
    """

    members: int = 5
    interval: str | IntervalMethod | None = "members"
    engine: str | Engine = "network"
    n_jobs: int | None = None

    _replicates: EnsembleReplicates = field(init=False)
    _task: Task = field(init=False)

    @property
    def _by_members(self) -> bool:
        return isinstance(self.interval, str) and self.interval == "members"

    def _n_members(self) -> int:
        smallest = 2 if self._by_members else 1
        return check_whole_number("members", self.members, smallest, "one member has no spread")

    def _check_options(self) -> None:
        self._n_members()
        if resolve_engine(self.engine).is_infinite:
            raise InvalidInputError(
                "engine='kernel' has no single networks to train; use engine='linearized' or 'network', or "
                "PNCRegressor.sample_networks, which draws them exactly"
            )

    def _train(self, data: TrainingData) -> None:
        engine, members = resolve_engine(self.engine), self._n_members()
        method = None
        if self.interval is not None and not self._by_members:
            method = resolve_interval(self.interval, len(data.X))
        if method is not None and (method.uses_influence or method.uses_posterior):
            raise InvalidInputError(f"interval={method} is for PNCRegressor; use a resampling method such as 'sectioning'")
        plan = resampling.full(len(data.X)) if method is None else method.plan(len(data.X), data.streams)
        choice = choose(self.network, self.regularization, data, data.labels, converges=engine.converges)
        labels = data.labels[:, None]
        self._task = Task(data.inputs, labels, choice.network, choice.regularization, data.streams, data.progress)
        trained = engine.fit(self._task, with_members(plan, members), n_jobs=self.n_jobs)
        self._replicates = EnsembleReplicates(trained, plan, data.scaling, data.device, members)
        self.interval_, self.engine_ = method, engine
        self.network_, self.regularization_ = choice.network, choice.regularization

    def _estimate_chunk(self, asked: EnsembleQuery) -> Estimate:
        if self.interval_ is not None:
            return super()._estimate_chunk(asked)
        members = asked.members[0]
        spread = members.std(axis=0, ddof=1) if self._by_members else np.full(members.shape[1:], np.nan)
        return Estimate(members.mean(axis=0), spread, np.inf)

    def _check_has_interval(self) -> None:
        if self.interval is None:
            raise InvalidInputError("interval=None has predictions only; give an interval method, such as 'sectioning'")

    def _restore(self, record: Record, device: torch.device) -> Scaling:
        members = record.whole_number("members", at_least=1)
        choice = Choice(self.network_, self.regularization_)
        networks, self._task = restore_networks(record, self.engine_, choice, Squared(), device, members=members)
        self._replicates = EnsembleReplicates(*networks, members)
        return self._replicates.scaling

    def _some_points(self, n_points: int) -> FloatArray:
        return self._replicates.scaling.from_network(self._task.X[:n_points].cpu().numpy())


@dataclass(kw_only=True, eq=False, repr=False)
class SingleNetworkRegressor(DeepEnsembleRegressor):
    """One network, as most people train it; its intervals, by resampling, mix the seed's noise with the data's.

    Parameters
    ----------
    interval : str, interval method or None, default="cheap_bootstrap"
        None trains the one network and has predictions without intervals.
    engine : {"network", "linearized"} or engine, default="network"
    network, regularization, standardize, random_state, n_jobs, device, verbose
        As for `PNCRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = SingleNetworkRegressor(network=MLP(width=64), regularization=0.1, random_state=0)
    >>> reg.fit(X[:60], y[:60]).predict(X[60:65]).shape
    (5,)
    """

    members: int = field(default=1, init=False)
    interval: str | IntervalMethod | None = "cheap_bootstrap"

    def _n_members(self) -> int:
        if self._by_members:
            raise InvalidInputError(
                "interval='members' needs several networks; use DeepEnsembleRegressor, or resample the data"
            )
        return 1


@dataclass(kw_only=True, eq=False, repr=False)
class MCDropoutRegressor(IntervalRegressor):
    """Monte Carlo dropout (Gal and Ghahramani, 2016), as the paper's comparison uses it.

    One network is trained with dropout and asked ``passes`` times with dropout on; the interval is mean ± z times the
    standard deviation of the answers. Its width follows the rate, which has to be tuned.

    Parameters
    ----------
    rate : float, default=0.1
        Share of hidden neurons dropped.
    passes : int, default=100
        Random sets of dropped neurons at prediction.
    steps : int, default=500
        Gradient steps of training, with momentum and the whole data.
    network : "auto" or MLP, default="auto"
    regularization, standardize, random_state, device, verbose
        As for `PNCRegressor`.
    trainer : GradientDescent or None, default=None
        Plain gradient descent of that many steps at that rate instead of ``steps`` with momentum.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = MCDropoutRegressor(rate=0.2, steps=50, network=MLP(width=64), regularization=0.1, random_state=0)
    >>> reg.fit(X[:60], y[:60]).predict_interval(X[60:65])[1].shape
    (5, 2, 1)
    """

    rate: float = 0.1
    passes: int = 100
    steps: int = 500
    trainer: GradientDescent | None = None

    _chosen: ClassVar = {"network": (MLP,), "regularization": (int, float)}

    def _check_options(self) -> None:
        check_share("rate", self.rate)
        check_whole_number("passes", self.passes, at_least=2, reason="one answer has no spread")
        check_whole_number("steps", self.steps, at_least=1)
        if self.trainer is not None and not isinstance(self.trainer, GradientDescent):
            raise InvalidInputError(f"trainer={self.trainer!r} is not known; use None or GradientDescent(steps=..., rate=...)")
        if self.trainer is not None and (self.trainer.steps < 1 or self.trainer.tolerance is not None):
            raise InvalidInputError(f"trainer={self.trainer}: dropout takes at least one step and no tolerance")
        if is_module(self.network):
            raise InvalidInputError("MCDropoutRegressor puts dropout into an MLP(...); a torch module has its own layers")

    def _train(self, data: TrainingData) -> None:
        if len(data.X) < 2:
            raise InvalidInputError(f"n_samples={len(data.X)}: at least two rows are needed to fit a network")
        inputs, labels = data.inputs, data.labels
        choice = choose(self.network, self.regularization, data, labels, converges=False)
        batch = make_batch(choice.network, inputs, labels.shape[1])
        start = batch.draw(data.streams.generator("start", 0)).to(data.device)
        counts = torch.ones(1, len(inputs), dtype=torch.float64, device=data.device)
        objective = Objective(batch, start[None], inputs[None], labels[None], counts, choice.regularization)
        trainer = self.trainer or self.steps
        self._network = train_dropout(objective, self.rate, trainer, data.scaling, data.streams, data.progress)
        self.network_, self.regularization_ = choice.network, choice.regularization

    def _at(self, X: FloatArray, *, is_shared: bool) -> FloatArray:
        return X

    def _estimate_chunk(self, X: FloatArray) -> Estimate:
        answers = self._network.passes(X, self.passes)
        return Estimate(answers.mean(axis=0), answers.std(axis=0, ddof=1), np.inf)

    def _procedural_chunk(self, X: FloatArray) -> FloatArray:
        return np.full((len(X), 1), np.nan)  # one network says nothing of other seeds

    def _noise_chunk(self, X: FloatArray) -> FloatArray:
        return self._network.noise_variance

    def _numbers_per_point(self, *, is_shared: bool) -> int:
        return max(self.passes, self._network.batch.width)

    def _state(self) -> State:
        return self._network.state()

    def _restore(self, record: Record, device: torch.device) -> Scaling:
        assert isinstance(self.network_, MLP)
        self._network = DropoutNetwork.restore(record, self.network_, device)
        return self._network.scaling

    def _some_points(self, n_points: int) -> FloatArray:
        scaling = self._network.scaling
        steps = np.linspace(-1, 1, n_points).reshape(-1, *[1] * scaling.x_mean.ndim)  # no rows are kept: around their mean
        return scaling.from_network(steps + np.zeros_like(scaling.x_mean))
