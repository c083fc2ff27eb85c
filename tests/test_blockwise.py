"""Blocks, each solved alone, whatever way the rows arrive."""

import pickle
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data as validate

from unseed import MLP, BlockwisePNCRegressor, parquet_pieces
from unseed._estimators import blockwise
from unseed._pieces import regrouped
from unseed.engines import _blocks as blocks
from unseed.engines import block_rows
from unseed.errors import InvalidInputError, ModelFileError
from unseed.kernels import ntk

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(420, 3)), RNG.normal(size=(9, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=420)
NETWORK = MLP(bias_scale=1.0, scale_inputs=True)
OPTIONS = {"network": NETWORK, "regularization": 1e-3, "random_state": 0}


def pieces(sizes, y=Y):
    ends = np.cumsum(sizes)
    return [(X[end - size : end], y[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def assert_same(left, right, points=X_NEW):
    a, b = left.get_prediction(points), right.get_prediction(X_NEW)
    assert_allclose(a.mean, b.mean, rtol=1e-12)
    assert_allclose(a.standard_error, b.standard_error, rtol=1e-9)
    assert_allclose(a.components.noise, b.components.noise, rtol=1e-9)


@parametrize_with_checks([BlockwisePNCRegressor(network=NETWORK, regularization=0.01)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_interval_is_batching_over_blocks_solved_by_hand():
    reg = BlockwisePNCRegressor(block_size=100, standardize=False, **OPTIONS).fit_stream(pieces([100, 100, 100, 120]))
    predictions = []
    for rows in (slice(0, 100), slice(100, 200), slice(200, 300), slice(300, 420)):
        K = ntk(X[rows], network=NETWORK)
        weights = np.linalg.solve(K + 1e-3 * len(K) * np.eye(len(K)), Y[rows])
        predictions.append(ntk(X_NEW, X[rows], network=NETWORK) @ weights)
    centre, spread = np.mean(predictions, axis=0), np.std(predictions, axis=0, ddof=1) / 2
    mean, intervals = reg.predict_interval(X_NEW)
    assert_allclose(mean, centre, rtol=0, atol=1e-10)
    assert_allclose(intervals[:, 1, 0], centre + stats.t.ppf(0.975, 3) * spread, rtol=0, atol=1e-10)


def test_pieces_of_any_size_make_the_same_blocks():
    whole = BlockwisePNCRegressor(block_size=60, **OPTIONS).fit_stream([(X, Y)])
    assert whole.n_blocks_ == 7
    assert_same(whole, BlockwisePNCRegressor(block_size=60, **OPTIONS).fit_stream(pieces([1, 59, 200, 7, 153])))
    assert_same(whole, BlockwisePNCRegressor(block_size=60, n_jobs=2, **OPTIONS).fit_stream(iter(pieces([210, 210]))))


def test_new_rows_leave_old_blocks_alone():
    reg = BlockwisePNCRegressor(block_size=60, **OPTIONS)
    for X_piece, y_piece in pieces([100, 100, 100]):
        reg.partial_fit(X_piece, y_piece)
    assert (reg.n_blocks_, reg.n_rows_, reg.n_waiting_) == (5, 300, 0)
    first, scaling = reg._networks.fits[0], reg._networks.scaling
    before = reg.get_prediction(X_NEW).standard_error
    reg.partial_fit(X[300:], Y[300:])
    assert (reg.n_blocks_, reg.n_rows_, reg.n_waiting_) == (7, 420, 0)
    assert reg._networks.fits[0] is first
    assert reg._networks.scaling is scaling
    assert (reg.get_prediction(X_NEW).standard_error != before).all()
    assert_same(reg, BlockwisePNCRegressor(block_size=60, **OPTIONS).fit_stream([(X, Y)]))


def test_rows_that_fill_no_block_wait():
    reg = BlockwisePNCRegressor(block_size=60, **OPTIONS).partial_fit(X[:130], Y[:130])
    assert (reg.n_blocks_, reg.n_waiting_) == (2, 10)
    mean = reg.predict(X_NEW)
    reg.partial_fit(X[130:140], Y[130:140])
    assert reg.n_waiting_ == 20
    assert_array_equal(reg.predict(X_NEW), mean)


def test_memmap_is_read_block_by_block(tmp_path, monkeypatch):
    files = []
    for name, array in (("X", X), ("y", Y)):
        file = np.memmap(tmp_path / name, dtype=np.float64, mode="w+", shape=array.shape)
        file[:] = array
        file.flush()
        files.append(np.memmap(tmp_path / name, dtype=np.float64, mode="r", shape=array.shape))
    options = OPTIONS | {"block_size": 70}
    whole = BlockwisePNCRegressor(**options).fit(X, Y)
    for labels in (files[1], Y, list(Y), pd.Series(Y)):
        assert_same(BlockwisePNCRegressor(**options).fit(files[0], labels), whole)
    seen = []
    monkeypatch.setattr(
        blockwise, "validate_data", lambda reg, X, *rest, **options: seen.append(len(X)) or validate(reg, X, *rest, **options)
    )
    BlockwisePNCRegressor(**options).fit(files[0], Y)
    assert max(seen) == 70


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"a": X[:, 0], "y": Y, "b": X[:, 1], "c": X[:, 2]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=50)
    reg = BlockwisePNCRegressor(block_size=60, **OPTIONS).fit_stream(parquet_pieces(tmp_path / "rows.parquet", "y", rows=33))
    assert_same(reg, BlockwisePNCRegressor(block_size=60, **OPTIONS).fit_stream([(X, Y)]))
    with pytest.raises(InvalidInputError, match=r"target='z' is not a column of .*; it has \['a', 'y', 'b', 'c'\]"):
        next(parquet_pieces(tmp_path / "rows.parquet", "z"))
    (tmp_path / "junk.parquet").write_bytes(b"junk")
    with pytest.raises(InvalidInputError, match="is not a Parquet file that can be read"):
        next(parquet_pieces(tmp_path / "junk.parquet", "y"))


def test_new_blocks_are_as_large_as_those_of_the_fit():
    reg = BlockwisePNCRegressor(**OPTIONS).fit(X[:320], Y[:320])
    assert (reg.n_blocks_, reg.block_size_) == (8, 40)
    reg.partial_fit(X[320:], Y[320:])
    assert (reg.n_blocks_, reg.block_size_, reg.n_waiting_) == (10, 40, 20)


def test_rows_that_could_not_be_added_may_be_given_again(monkeypatch):
    reg = BlockwisePNCRegressor(block_size=60, n_jobs=1, **OPTIONS).partial_fit(X[:200], Y[:200])
    real, solved = blocks.solve_ridge, []

    def fails_once(*arguments, **options):
        solved.append(1)
        if len(solved) == 2:
            raise MemoryError
        return real(*arguments, **options)

    monkeypatch.setattr(blocks, "solve_ridge", fails_once)
    with pytest.raises(MemoryError):
        reg.partial_fit(X[200:], Y[200:])
    assert (reg.n_blocks_, reg.n_waiting_, len(reg._networks.fits)) == (3, 20, 3)
    reg.partial_fit(X[200:], Y[200:])
    assert_same(reg, BlockwisePNCRegressor(block_size=60, **OPTIONS).fit_stream([(X, Y)]))


def test_rows_that_are_checked_do_not_grow_with_the_blocks(monkeypatch):
    from unseed._predictors import block_average as predictors

    monkeypatch.setattr(predictors, "_CHECKED_ROWS", 12)
    reg = BlockwisePNCRegressor(block_size=10, **OPTIONS).fit_stream([(X, Y)])
    found, networks = reg._networks.out_of_block, reg._networks
    assert len(found.errors) == 12 < reg.n_blocks_ == 42
    rows, labels = (torch.cat(parts) for parts in zip(*(networks.fits[b].some_checked(1) for b in (0, 41)), strict=True))
    for place, own, row, label in ((0, 0, rows[:1], labels[0]), (-1, 41, rows[1:], labels[1])):
        others = [fit.predict(NETWORK, row) for b, fit in enumerate(networks.fits) if b != own]
        others = networks.scaling.from_labels(torch.cat(others).numpy())
        assert_allclose(found.errors[place], networks.scaling.from_labels(label.numpy()) - others.mean(0), rtol=1e-9)
        assert_allclose(found.variance[place], others.var(0, ddof=1) / 41, rtol=1e-9)


class TestBlocksInFiles:
    def test_same_numbers_as_in_memory(self, tmp_path):
        for options in ({}, {"precision": "mixed"}, {"n_jobs": 2}):
            here, there = (
                BlockwisePNCRegressor(block_size=60, folder=folder, **options, **OPTIONS).fit(X, Y)
                for folder in (None, tmp_path / "blocks")
            )
            assert_same(here, there)
            expected, found = (reg.predict_interval(X_NEW, kind="prediction")[1] for reg in (here, there))
            assert_array_equal(found, expected)

    def test_tasks_carry_names_and_no_rows(self, tmp_path):
        reg = BlockwisePNCRegressor(block_size=60, folder=str(tmp_path), **OPTIONS).fit(X, Y)
        assert len(list(tmp_path.glob("blocks-*/*.safetensors"))) == reg.n_blocks_ == 7
        assert max(len(pickle.dumps(block)) for block in reg._networks.fits) < 1000

    def test_new_rows_become_new_files_and_copies_have_their_own(self, tmp_path):
        reg = BlockwisePNCRegressor(block_size=60, folder=tmp_path, **OPTIONS).partial_fit(X[:180], Y[:180])
        old = {file: file.read_bytes() for file in tmp_path.glob("*/*")}
        twin = pickle.loads(pickle.dumps(reg)).partial_fit(X[180:], -Y[180:])
        reg.partial_fit(X[180:], Y[180:])
        assert all(file.read_bytes() == content for file, content in old.items())
        assert_same(reg, BlockwisePNCRegressor(block_size=60, **OPTIONS).fit_stream([(X, Y)]))
        assert np.abs(twin.predict(X_NEW) - reg.predict(X_NEW)).max() > 0.1

    def test_a_second_fit_leaves_the_first_model_alone(self, tmp_path):
        one, two = (BlockwisePNCRegressor(block_size=60, folder=tmp_path, **OPTIONS) for _ in range(2))
        before = one.fit(X, Y).predict(X_NEW)
        two.fit(X, -Y)
        assert_array_equal(one.predict(X_NEW), before)

    def test_saved_model_needs_no_folder(self, tmp_path):
        reg = BlockwisePNCRegressor(block_size=60, folder=tmp_path / "blocks", **OPTIONS).fit(X, Y)
        reg.save(tmp_path / "model")
        expected = reg.predict_interval(X_NEW)[1]
        shutil.rmtree(tmp_path / "blocks")
        loaded = BlockwisePNCRegressor.load(tmp_path / "model")
        assert_array_equal(loaded.predict_interval(X_NEW)[1], expected)
        assert loaded.compress().compression_.dtype == "float32"
        assert loaded.partial_fit(X[:60], Y[:60]).n_blocks_ == 8  # the new one in a file

    def test_a_file_that_is_gone_or_damaged_is_named(self, tmp_path):
        reg = BlockwisePNCRegressor(block_size=60, folder=tmp_path, **OPTIONS).fit(X, Y)
        file = reg._networks.fits[3].path
        file.write_bytes(file.read_bytes()[:100])
        with pytest.raises(ModelFileError, match=r"should be in '.*000000003-.*safetensors' and cannot be read"):
            reg.predict(X_NEW)
        file.unlink()
        with pytest.raises(ModelFileError, match="the folder must stay where it is"):
            reg.predict(X_NEW)

    def test_what_cannot_be_is_refused_before_anything_runs(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(InvalidInputError, match=r"folder='.*file' is not a folder that can be written"):
            BlockwisePNCRegressor(block_size=60, folder=tmp_path / "file", **OPTIONS).fit(X, Y)
        with pytest.raises(InvalidInputError, match="folder=3 must be the name of a folder"):
            BlockwisePNCRegressor(folder=3).fit(X, Y)
        with pytest.raises(InvalidInputError, match="centre='full' holds all rows in memory"):
            BlockwisePNCRegressor(folder=tmp_path, centre="full").fit(X, Y)
        reg = BlockwisePNCRegressor(block_size=60, folder=tmp_path, **OPTIONS).fit(X, Y)
        with pytest.raises(InvalidInputError, match="blocks in files have no smaller form"):
            reg.compress()

    def test_memory_does_not_grow_with_the_rows(self, tmp_path):
        script = """
import resource, sys
import numpy as np
from unseed import MLP, BlockwisePNCRegressor

def pieces(n_pieces):
    rng = np.random.default_rng(0)
    for _ in range(n_pieces):
        X = rng.normal(size=(256, 1000))
        yield X, X[:, 0]

def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

for n_pieces in (8, 120):
    reg = BlockwisePNCRegressor(block_size=256, network=MLP(), regularization=1e-2, folder=sys.argv[1], random_state=0)
    reg.fit_stream(pieces(n_pieces)).predict_interval(np.zeros((3, 1000)), kind="prediction")
    print(megabytes())
"""
        done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
        few, many = map(float, done.stdout.split())
        rows = 120 * 256 * 1000 * 8 / 2**20  # 234 MB
        assert many - few < 0.25 * rows


def test_several_outputs_and_a_network_that_is_chosen():
    both = np.column_stack([Y, 2 * Y + 1])
    reg = BlockwisePNCRegressor(random_state=0).fit(X, both)
    p = reg.get_prediction(X_NEW)
    assert p.mean.shape == (9, 2)
    assert_allclose(p.mean[:, 1], 2 * p.mean[:, 0] + 1, rtol=1e-6)
    assert_allclose(p.components.noise[:, 1], 4 * p.components.noise[:, 0], rtol=1e-6)
    assert reg.selection_ is not None
    assert reg.n_blocks_ == 8
    assert np.isnan(p.components.procedural).all()


def test_a_data_frame_is_fitted_without_a_warning_about_its_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    reg = BlockwisePNCRegressor(block_size=100, **OPTIONS).fit(frame, Y)
    assert_same(reg, BlockwisePNCRegressor(block_size=100, **OPTIONS).fit(X, Y), pd.DataFrame(X_NEW, columns=frame.columns))


def test_noise_is_that_of_the_data():
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(4000, 2))
    y = np.sin(inputs).sum(axis=1) + 0.3 * rng.normal(size=4000)
    reg = BlockwisePNCRegressor(block_size=500, network=NETWORK, random_state=0).fit(inputs, y)
    assert reg.get_prediction(X_NEW[:, :2]).components.noise[0] == pytest.approx(0.09, rel=0.1)


@pytest.mark.parametrize("sizes", [[1], [7], [8], [11], [12], [100], [3] * 30, [1, 50, 2, 9]])
def test_regrouped_blocks_have_every_row_once_and_are_not_small(sizes):
    rows = np.arange(sum(sizes), dtype=np.float64)[:, None]
    ends = np.cumsum(sizes)
    blocks = [X for X, _ in regrouped(((rows[e - s : e], rows[e - s : e]) for s, e in zip(sizes, ends, strict=True)), 8)]
    assert_array_equal(np.concatenate(blocks), rows)
    if sum(sizes) >= 8:
        assert all(6 <= len(block) < 12 for block in blocks)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: BlockwisePNCRegressor(block_size=0).fit(X, Y), "block_size=0 must be a whole number"),
        (lambda: BlockwisePNCRegressor(centre="middle").fit(X, Y), "centre='middle' is not known; use 'blocks' or 'full'"),
        (lambda: BlockwisePNCRegressor(precision="half").fit(X, Y), "precision='half' is not known"),
        (lambda: BlockwisePNCRegressor(tolerance=0).fit(X, Y), "tolerance=0 must be"),
        (lambda: BlockwisePNCRegressor(centre="full").partial_fit(X, Y), "centre='full' needs all rows at once"),
        (lambda: BlockwisePNCRegressor(centre="full", regularization=0).fit(X, Y), "regularization=0 leaves"),
        (lambda: BlockwisePNCRegressor(network=lambda: None).fit(X, Y), "a torch module has none"),
        (lambda: BlockwisePNCRegressor(block_size=500, **OPTIONS).fit_stream([(X, Y)]), "420 rows fill 1 blocks"),
        (lambda: BlockwisePNCRegressor(block_size=60, **OPTIONS).partial_fit(X, Y).partial_fit(X, X), "y has 3 outputs"),
    ],
)
def test_what_cannot_be_is_said(act, words):
    with pytest.raises(InvalidInputError, match=words):
        act()


@pytest.mark.parametrize("outputs", [1, 2])
def test_centre_of_sectioning_is_the_network_on_all_rows(outputs):
    y = np.column_stack([Y, X[:, 0] ** 2])[:, :outputs]
    reg = BlockwisePNCRegressor(block_size=60, centre="full", tolerance=1e-12, standardize=False, **OPTIONS).fit_stream(
        [(X, y)]
    )
    K = ntk(X, network=NETWORK)
    exact = ntk(X_NEW, X, network=NETWORK) @ np.linalg.solve(K + 1e-3 * len(K) * np.eye(len(K)), y)
    p = reg.get_prediction(X_NEW)
    assert_allclose(p.mean.reshape(exact.shape), exact, rtol=0, atol=1e-9)
    assert reg.centre_.converged
    left = y - (K + 1e-3 * len(K) * np.eye(len(K))) @ reg.centre_.dual.numpy()
    worst = (np.linalg.norm(left, axis=0) / np.linalg.norm(y, axis=0)).max()
    assert reg.centre_.relative_residual == pytest.approx(worst, rel=1e-3, abs=1e-14)
    blocks = np.stack([b.predict(NETWORK, reg.centre_.X.new_tensor(X_NEW)).numpy() for b in reg._networks.fits])
    spread = np.sqrt(((blocks - exact) ** 2).sum(0) / (len(blocks) - 1) / len(blocks))
    assert_allclose(p.standard_error.reshape(exact.shape), spread, rtol=1e-6)


def test_iterations_that_do_not_suffice_are_reported():
    reg = BlockwisePNCRegressor(block_size=60, centre="full", max_iterations=1, tolerance=1e-14, **OPTIONS)
    with pytest.warns(ConvergenceWarning, match=r"after 1 iterations .* relative residual of \d.*raise max_iterations=1"):
        reg.fit(X, Y)
    assert not reg.centre_.converged
    assert reg.centre_.relative_residual > 1e-14


def test_mixed_precision_gives_the_same_numbers():
    exact, mixed = (
        BlockwisePNCRegressor(block_size=60, precision=precision, **OPTIONS).fit(X, Y).get_prediction(X_NEW)
        for precision in ("double", "mixed")
    )
    assert_allclose(mixed.mean, exact.mean, rtol=1e-9)
    assert_allclose(mixed.standard_error, exact.standard_error, rtol=1e-8)
    assert_allclose(mixed.components.noise, exact.components.noise, rtol=1e-8)


def test_automatic_blocks_depend_on_rows_and_memory_alone(monkeypatch):
    cpu = torch.device("cpu")
    sizes = [block_rows(n, cpu) for n in (16, 4_000, 65_536, 10**5, 10**6, 10**7, 10**9)]
    assert sizes == [2, 500, 8192, 4096, 2048, 1024, 1024]
    monkeypatch.setattr("unseed.engines._blocks.total_bytes", lambda device: 2**30)
    assert block_rows(65_536, cpu) == 2048
    assert BlockwisePNCRegressor(**OPTIONS).fit(X, Y).block_size_ == 52


def test_errors_out_of_block_are_those_of_the_other_blocks():
    reg = BlockwisePNCRegressor(block_size=60, standardize=False, **OPTIONS).fit_stream([(X, Y)])
    fits, found = reg._networks.fits, reg._networks.out_of_block
    assert len(found.errors) == 420
    others = np.mean([b.predict(NETWORK, torch.tensor(X[60:120])).numpy() for i, b in enumerate(fits) if i != 1], axis=0)
    assert_allclose(found.errors[60:120, 0], Y[60:120] - others[:, 0], rtol=0, atol=1e-10)
    spread = np.var([b.predict(NETWORK, torch.tensor(X[60:120])).numpy() for i, b in enumerate(fits) if i != 1], axis=0, ddof=1)
    assert_allclose(found.variance[60:120], spread / 6, rtol=1e-9)
    before = found.noise_variance
    reg.partial_fit(X[:60], Y[:60] + 3.0)
    assert reg._networks.out_of_block.noise_variance > 2 * before


def test_prediction_intervals_hold_where_noise_varies_and_the_network_is_wrong():
    """An estimate of the noise from the fit itself was too small here; errors at rows that a block never saw are not."""
    rng = np.random.default_rng(3)

    def draw(n):
        inputs = rng.normal(size=(n, 2))
        return inputs, np.sign(inputs[:, 0]) + 0.3 * np.abs(inputs[:, 1]) * rng.standard_t(5, size=n)

    reg = BlockwisePNCRegressor(block_size=200, network=NETWORK, regularization=1e-8, random_state=0).fit(*draw(1600))
    X_test, y_test = draw(2000)
    bounds = reg.predict_interval(X_test, 0.9, kind="prediction")[1][:, :, 0]
    inside = ((bounds[:, 0] <= y_test) & (y_test <= bounds[:, 1])).mean()
    # 0.9 of 2,000 points has a standard error of 0.007, the quantile of a thousand scores 0.01: three of both together
    assert abs(inside - 0.9) < 0.036
