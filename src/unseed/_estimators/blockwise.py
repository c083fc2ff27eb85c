"""`BlockwisePNCRegressor`: batching over as many blocks as the rows fill, one after the other."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from unseed._checks import check_flag, check_number, check_whole_number
from unseed._estimators.block_work import BlockWork, new_folder, threads_beside, workers_for
from unseed._estimators.regressor import IntervalRegressor
from unseed._estimators.shrinking import check_dtype, measured, with_block_rounded
from unseed._estimators.training import TrainingData, check_regularization, choose, is_module
from unseed._frames import names_of
from unseed._machine import resolve_device
from unseed._pieces import Block, Piece, regrouped
from unseed._predictors import BlockNetworks
from unseed._progress import Progress
from unseed._random import Streams
from unseed._results import Estimate, FloatArray
from unseed._scaling import Scaling
from unseed._selection import Selection
from unseed._state import Record, State
from unseed.engines import FullFit, block_rows
from unseed.errors import InvalidInputError
from unseed.networks import MLP

STREAM_ROWS = 2048
_LOOKED_AT = 1000  # rows at which a compressed model is compared
_ENOUGH_SCORES = 60


@dataclass(kw_only=True, eq=False, repr=False)
class BlockwisePNCRegressor(IntervalRegressor):
    """PNC for more rows than one network can be trained on: every block of rows has its own, and they are averaged.

    This is the paper's batching (Algorithm 2) with as many batches as there are blocks: mean of the blocks' predictions
    ± t(B − 1) · S/√B. Time and memory are linear in the number of rows, and rows may arrive in pieces. The
    average has the bias of networks trained on a block, which the interval does not see: larger blocks have less of it, and
    ``centre="full"`` has none of it.

    Parameters
    ----------
    block_size : int or "auto", default="auto"
        Rows of a block. ``"auto"`` is the largest power of two between 1024 and 8192 whose factorisations take about a minute
        together on two cores (or one GPU) and whose matrix is at most a sixteenth of all memory, but no more than an eighth of
        the rows; 2048 for a stream, whose length is not known. Neither workers nor load change it.
    centre : {"blocks", "full"}, default="blocks"
        What the interval is centred at: the mean of the blocks, or (sectioning) one network on all rows, found by conjugate
        gradients with a Nyström preconditioner. That takes n² kernel entries for every iteration, and no more memory
        than a block; `centre_` tells its residual.
    tolerance : float, default=1e-6
        Relative residual at which the iterations for ``centre="full"`` stop.
    max_iterations : int, default=200
        After which they stop in any case, with a `ConvergenceWarning`.
    precision : {"double", "mixed"}, default="double"
        ``"mixed"`` solves blocks with a float32 factor and float64 iterations to a residual of 1e-11, in about half the time;
        blocks that do not get there are solved in float64 after all.
    folder : str, Path or None, default=None
        Where rows and dual weights of the blocks are kept: None keeps them in memory, 8 (d + 2 k) bytes for each row; a folder
        keeps them in files, which are read again for every prediction, and memory is that of a few blocks however
        many rows there are. Every fit has a subfolder of its own, which must stay as long as the model is used and is yours to
        delete. Workers on other machines must see it under the same name; then they are sent no rows to predict.
    network, regularization, standardize, random_state, device, verbose
        As for `PNCRegressor`, with the kernel engine. Network, λ_n and units come from the first block and are kept.
    n_jobs : int or None, default=None
        Blocks solved at the same time, as joblib tasks. None takes as many as there are cores (and memory) on a CPU,
        or workers of another backend.

    Attributes
    ----------
    n_blocks_ : int
    n_rows_ : int
        Rows that the blocks have.
    n_waiting_ : int
        Rows given to `partial_fit` that do not fill a block yet.
    block_size_ : int
        Rows of a block, to within a half where the rows cannot be divided evenly.
    centre_ : FullFit or None
        The network on all rows: its ``relative_residual``, ``iterations`` and whether it ``converged``.
    compression_ : Compression
        What a model made by `compress` has saved and changed.
    network_, regularization_, selection_
        What the arguments came to.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=1000)
    >>> reg = BlockwisePNCRegressor(block_size=200, network=MLP(bias_scale=1.0), random_state=0).fit(X, y)
    >>> reg.n_blocks_, reg.predict_interval(X[:3])[1].shape
    (5, (3, 2, 1))
    """

    block_size: int | str = "auto"
    centre: str = "blocks"
    tolerance: float = 1e-6
    max_iterations: int = 200
    precision: str = "double"
    folder: str | Path | None = None
    n_jobs: int | None = None

    _chosen: ClassVar = {
        **{"network": (MLP,), "regularization": (int, float)},
        **{"selection": (Selection, type(None)), "block_size": (int,)},
    }
    _networks: BlockNetworks | None = field(init=False)
    _waiting: Block | None = field(init=False)
    _labels: list[torch.Tensor] = field(init=False)
    _store: Path | None = field(init=False)
    centre_: FullFit | None = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows that are all there: in memory, or on disk as a NumPy memmap, which is read block by block.

        Rows are put into blocks at random.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        self._begin()
        as_block = self._checked  # blocks of a memmap are checked as they are read
        if isinstance(X, np.memmap):
            self._output_names, y = names_of(y), np.asarray(y)
        else:
            names, as_block = names_of(y), self._as_block
            X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
            self._output_names = names
        if len(X) != len(y):
            raise InvalidInputError(f"X has {len(X)} rows and y has {len(y)}; they must be the same")
        if len(X) < 2:
            raise InvalidInputError(f"n_samples={len(X)}: at least two rows are needed, one for each of two blocks")
        self.block_size_ = self._rows_of_a_block(len(X))
        n_blocks = max(2, round(len(X) / self.block_size_))
        order = Streams.from_random_state(self.random_state).generator("resample", "blocks").permutation(len(X))
        parts = [np.sort(rows) for rows in np.array_split(order, n_blocks)]
        self._add((as_block(X[rows], y[rows]) for rows in parts), n_blocks)
        self._find_centre()
        return self

    def fit_stream(self, pieces: Iterable[Piece]) -> Self:
        """Train on pieces (X, y) of any size, which must arrive in random order; only a few blocks are held at a time.

        Parameters
        ----------
        pieces : iterable of (X, y)
            Such as `unseed.parquet_pieces` gives.
        """
        self._begin()
        checked = (self._checked(X, y) for X, y in pieces)
        self.block_size_ = self._rows_of_a_block(None)
        self._add(regrouped(checked, self.block_size_), None)
        if self.n_blocks_ < 2:
            rows = self.n_rows_
            raise InvalidInputError(f"{rows} rows fill {self.n_blocks_} blocks; two are needed: use a smaller block_size")
        self._find_centre()
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add rows. Blocks that are there stay as they are; rows that do not fill a block wait for more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        if self.centre == "full":
            raise InvalidInputError("centre='full' needs all rows at once; use centre='blocks' for rows that arrive later")
        if not hasattr(self, "n_blocks_"):
            self._begin()
        X, y = self._checked(X, y)
        if self._waiting is not None:
            X, y = np.concatenate([self._waiting[0], X]), np.concatenate([self._waiting[1], y])
        size = self.block_size_ = getattr(self, "block_size_", self._rows_of_a_block(None))
        n_whole = len(X) // size
        self._add(((X[i * size : (i + 1) * size], y[i * size : (i + 1) * size]) for i in range(n_whole)), n_whole)
        self._waiting = (X[n_whole * size :].copy(), y[n_whole * size :].copy())
        self.n_waiting_ = len(self._waiting[0])
        return self

    def compress(self, *, dtype: str = "float32") -> Self:
        """The same blocks with rows in float32, solved again; ``compression_`` says what that has saved and changed.

        The estimator itself stays as it is.

        Parameters
        ----------
        dtype : {"float32", "float64"}
        """
        check_is_fitted(self, "is_fitted_")
        if self.centre_ is not None:
            raise InvalidInputError("centre='full' has no smaller form; fit with centre='blocks' for one")
        if self._store is not None:
            raise InvalidInputError(
                f"folder={str(self.folder)!r}: blocks in files have no smaller form; fit with folder=None for one"
            )
        small = copy.copy(self)
        fits = [block.load() for block in self._known.fits]
        check_dtype(dtype)
        if dtype == "float32":
            tasks = (delayed(with_block_rounded)(block, self.network_, self.regularization_) for block in fits)
            with threads_beside(self._jobs()):
                fits = list(Parallel(n_jobs=self.n_jobs, prefer="threads")(tasks))
        small._networks = replace(self._known, fits=list(fits))
        points = self._some_points(_LOOKED_AT)
        small.compression_ = measured(self, small, points, dtype, self.n_rows_, self.n_rows_)
        return small

    def _begin(self) -> None:
        self._forget()
        self._check_options()
        self._where = resolve_device(self.device)
        self._networks, self._waiting, self._labels = None, None, []
        self._store = self.centre_ = None
        self._output_names: Any = None
        self._single_output = True
        self.n_blocks_ = self.n_rows_ = self.n_waiting_ = 0

    def _checked(self, X: Any, y: Any) -> Block:
        is_first = not hasattr(self, "n_features_in_")
        X, y = validate_data(self, X, y, reset=is_first, multi_output=True, y_numeric=True, dtype=np.float64)
        return self._as_block(X, y)

    def _as_block(self, X: FloatArray, y: FloatArray) -> Block:
        """Labels as columns, as many as earlier rows had."""
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        if not self.n_rows_ and self._waiting is None:
            self._single_output = y.ndim == 1
        elif self._networks is not None and columns.shape[1] != len(self._known.scaling.y_scale):
            raise InvalidInputError(f"y has {columns.shape[1]} outputs and earlier rows had {len(self._known.scaling.y_scale)}")
        return X, columns

    def _add(self, blocks: Iterable[Block], n_blocks: int | None) -> None:
        """Choose units and network by the first block, then solve all, some at the same time."""
        iterator = iter(blocks)
        if self._networks is None:
            first = next(iterator, None)
            if first is None:
                return
            self._choose(*first)
            iterator = _with_first(first, iterator)
        if self.folder is not None and self._store is None:
            self._store = new_folder(self.folder)
        work = BlockWork(self.network_, self.regularization_, self.precision == "mixed", self._jobs(), self._store)
        progress = Progress(active=bool(self.verbose))
        with progress.steps("blocks", n_blocks or 0) as report:
            n_before = len(self._known.fits)
            try:
                for fit in work.train((self._in_units(X, y) for X, y in iterator), n_before):
                    self._known.add(fit)
                    report()
            except BaseException:
                self._known.keep(n_before)  # all of these rows are there, or none
                raise
        self.n_blocks_, self.n_rows_ = len(self._known.fits), self._known.n_rows
        if self.n_blocks_ >= 2:
            self.is_fitted_ = True

    def _find_centre(self) -> None:
        """One network on all rows, where it is wanted."""
        if self.centre != "full":
            return
        streams = Streams.from_random_state(self.random_state)
        progress = Progress(active=bool(self.verbose))
        with progress.steps("iterations", self.max_iterations) as report:
            self._known.centre = self.centre_ = FullFit.solve(
                self.network_,
                torch.cat([block.load().X for block in self._known.fits]),
                torch.cat(self._labels),
                self.regularization_,
                generator=streams.generator("landmarks"),
                tolerance=self.tolerance,
                max_iterations=self.max_iterations,
                report=report,
            )
        self._labels = []
        if not self.centre_.converged:
            warnings.warn(
                f"after {self.centre_.iterations} iterations the network on all rows has a relative residual of "
                f"{self.centre_.relative_residual:.1e}; raise max_iterations={self.max_iterations}, tolerance="
                f"{self.tolerance:g} or regularization",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _jobs(self) -> int | None:
        return workers_for(self.n_jobs, self._where, self.block_size_)

    def _choose(self, X: FloatArray, y: FloatArray) -> None:
        units = Scaling.fit(X, y, active=check_flag("standardize", self.standardize))
        streams = Streams.from_random_state(self.random_state)
        data = TrainingData(X, y, units, streams, self._where, Progress(active=bool(self.verbose)))
        choice = choose(self.network, self.regularization, data, data.labels, converges=True)
        assert isinstance(choice.network, MLP)
        self.network_, self.regularization_, self.selection_ = choice.network, choice.regularization, choice.selection
        self._networks = BlockNetworks(choice.network, units, self._where, n_jobs=self._jobs())
        self._row_shape = X.shape[1:]

    def _in_units(self, X: FloatArray, y: FloatArray) -> tuple[torch.Tensor, torch.Tensor]:
        """Features and labels of a block as a network sees them."""
        inputs = self._known.inputs(X)
        labels = torch.tensor(self._known.scaling.to_labels(y), device=self._where)
        if self.centre == "full":
            self._labels.append(labels)
        return inputs, labels

    def _rows_of_a_block(self, n_rows: int | None) -> int:
        if self.block_size != "auto":
            return int(self.block_size)
        return STREAM_ROWS if n_rows is None else block_rows(n_rows, self._where)

    def _check_options(self) -> None:
        if self.block_size != "auto":
            check_whole_number("block_size", self.block_size, at_least=1)
        for name, known in (("centre", ("blocks", "full")), ("precision", ("double", "mixed"))):
            if getattr(self, name) not in known:
                raise InvalidInputError(f"{name}={getattr(self, name)!r} is not known; use {known[0]!r} or {known[1]!r}")
        check_number("tolerance", self.tolerance, above=0.0)
        check_whole_number("max_iterations", self.max_iterations, at_least=1)
        check_regularization(self.regularization)
        if self.centre == "full" and self.regularization == 0:
            raise InvalidInputError("regularization=0 leaves conjugate gradients without ground; use a positive one, or 'auto'")
        check_flag("standardize", self.standardize)
        if self.folder is not None:
            if not isinstance(self.folder, (str, Path)):
                raise InvalidInputError(f"folder={self.folder!r} must be the name of a folder, or None for memory")
            if self.centre == "full":
                raise InvalidInputError("centre='full' holds all rows in memory; use folder=None with it, or centre='blocks'")
        if is_module(self.network):
            raise InvalidInputError("BlockwisePNCRegressor knows the kernels of MLP(...) only; a torch module has none")

    def _train(self, data: TrainingData) -> None:
        raise NotImplementedError  # `fit` has its own way

    def _at(self, X: FloatArray, *, is_shared: bool) -> FloatArray:
        return X

    def _estimate_chunk(self, X: FloatArray) -> Estimate:
        with threads_beside(self._jobs()):
            return self._known.estimate(X)

    def _procedural_chunk(self, X: FloatArray) -> FloatArray:
        return np.full((len(X), 1), np.nan)  # the factors that would tell are not kept

    def _noise_chunk(self, X: FloatArray) -> FloatArray:
        with threads_beside(self._jobs()):
            return self._known.out_of_block.noise_variance

    def _expected_error(self, asked: FloatArray, estimate: Estimate, noise: FloatArray) -> FloatArray | None:
        if len(self._known.out_of_block.errors) < _ENOUGH_SCORES:
            return None
        return np.asarray(np.sqrt(estimate.standard_error**2 + noise))

    def _scores(self) -> FloatArray:
        return self._known.out_of_block.scores

    def _numbers_per_point(self, *, is_shared: bool) -> int:
        return max(map(len, self._known.fits))

    @property
    def _known(self) -> BlockNetworks:
        assert self._networks is not None
        return self._networks

    def _state(self) -> State:
        waiting = {} if self._waiting is None else {"waiting_X": self._waiting[0], "waiting_y": self._waiting[1]}
        return {
            **self._known.state(),
            "has_waiting": self._waiting is not None,
            **waiting,
        }

    def _restore(self, record: Record, device: torch.device) -> Scaling:
        self._where, self._labels, self._waiting, self._store = device, [], None, None
        self._networks = BlockNetworks.restore(record, self.network_, device, self._jobs())
        self.centre_ = self._networks.centre
        if record.fact("has_waiting", bool):
            units = self._networks.scaling
            X = record.array("waiting_X", None, *units.x_mean.shape)
            self._waiting = X, record.array("waiting_y", len(X), len(units.y_mean))
        self.n_waiting_ = 0 if self._waiting is None else len(self._waiting[0])
        self.n_blocks_, self.n_rows_ = len(self._networks.fits), self._networks.n_rows
        return self._networks.scaling

    def _some_points(self, n_points: int) -> FloatArray:
        """Rows of every block in turn."""
        share = -(-n_points // self.n_blocks_)
        rows = torch.cat([block.load().X[:share] for block in self._known.fits])[:n_points]
        return self._known.scaling.from_network(rows.cpu().numpy())


def _with_first(first: Block, others: Iterator[Block]) -> Iterator[Block]:
    yield first
    yield from others
