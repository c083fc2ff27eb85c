"""Rows that come in pieces: from lists, files, memory maps and clusters, interrupted and refused; always the same model."""

import itertools
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from unseed import MLP, Exact, Landmarks, PNCRegressor, parquet_pieces
from unseed._estimators import checkpoint, first_look, summed
from unseed._estimators.summed import SummedRows
from unseed.engines import _cost
from unseed.errors import InvalidInputError, ModelFileError, NotEnoughMemoryError

RELU = MLP(depth=1, activation="relu", bias_scale=1.0, scale_inputs=True)
OPTIONS = {"network": RELU, "solver": Landmarks(count=100), "random_state": 0}


def rows(n, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + noise * rng.standard_normal(n)


POINTS, _ = rows(60, seed=1)


def sorted_rows():
    """A model that begins on the first of them is another one."""
    X, y = rows(14_000)
    order = np.argsort(X[:, 0])
    return X[order], y[order]


@pytest.fixture(scope="module")
def data():
    return sorted_rows()


@pytest.fixture(scope="module")
def whole(data):
    return PNCRegressor(**OPTIONS).fit(*data)


class Pieces:
    """Can be passed over as often as one likes; remembers how often."""

    def __init__(self, data, size=1700):
        self.data, self.size, self.passes = data, size, 0

    def __iter__(self):
        self.passes += 1
        X, y = self.data
        return ((X[at : at + self.size], y[at : at + self.size]) for at in range(0, len(X), self.size))


def assert_same(one, other, tolerance=1e-9):
    assert one.n_rows_ == other.n_rows_
    assert one.regularization_ == pytest.approx(other.regularization_, rel=1e-6)
    for kind in ("confidence", "prediction"):
        for mine, theirs in zip(
            one.predict_interval(POINTS, kind=kind), other.predict_interval(POINTS, kind=kind), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("size", [613, 200_000])
def test_pieces_that_can_be_passed_over_again_are_all_rows(data, whole, size):
    pieces = Pieces(data, size)
    model = PNCRegressor(**OPTIONS).fit_stream(pieces)
    assert_same(model, whole)
    assert pieces.passes == 2
    once = PNCRegressor(**OPTIONS).fit_stream(iter(pieces))
    difference = np.abs(once.predict(POINTS) - whole.predict(POINTS)).max()
    assert difference > 1e-3  # it began on the first rows, which are unlike the others


def test_few_rows_of_a_stream_are_held_and_fitted_exactly(data):
    few = data[0][::40], data[1][::40]
    options = {"network": RELU, "random_state": 0}
    exact = PNCRegressor(**options).fit(*few)
    for pieces in (Pieces(few, 100), iter(Pieces(few, 100))):
        model = PNCRegressor(**options).fit_stream(pieces)
        assert model.solver_ == Exact()
        np.testing.assert_allclose(model.predict_interval(POINTS)[1], exact.predict_interval(POINTS)[1], rtol=1e-12)


@pytest.mark.parametrize("size", [137, 613])
def test_no_more_is_held_than_the_rows_to_begin_on(data, size, monkeypatch):
    monkeypatch.setattr(first_look, "BEGIN_ROWS", 500)
    look = first_look.FirstLook(3)
    for X, y in Pieces((data[0], data[1][:, None]), size):
        look = look.plus(X, y)
    whole_at_once = first_look.FirstLook(3).plus(data[0], data[1][:, None])
    for mine, theirs in zip((*look.first, *look.sample), (*whole_at_once.first, *whole_at_once.sample), strict=True):
        assert len(mine) == 500
        assert mine.base is None
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(look.rows()[0], look.sample[0])  # sorted rows
    assert look.n_rows == 14_000


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_streams import OPTIONS, Pieces, sorted_rows
from unseed import PNCRegressor
from unseed._estimators import checkpoint

checkpoint._SHARE = float("inf")  # at every piece

def until_the_middle(pieces):
    for number, piece in enumerate(pieces):
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        yield piece

class KilledInTheSecondPass(Pieces):
    def __iter__(self):
        return super().__iter__() if self.passes == 0 else until_the_middle(super().__iter__())

pieces = KilledInTheSecondPass(sorted_rows())
PNCRegressor(**OPTIONS).fit_stream(pieces, sys.argv[2])
"""


def test_a_column_that_is_one_number_leaves_the_first_rows_as_good_as_others():
    X, y = rows(12_000)
    X = np.column_stack([X, np.full(len(X), 0.1), np.zeros(len(X))])
    look = first_look.FirstLook(0).plus(X, y[:, None])
    np.testing.assert_array_equal(look.rows()[0], X[:10_000])
    drifting = first_look.FirstLook(0).plus(X + np.linspace(0, 1, len(X))[:, None], y[:, None])
    assert not np.array_equal(drifting.rows()[0], drifting.first[0])


@pytest.fixture
def counted(monkeypatch):
    """Rows that are added up, piece by piece; a checkpoint is written after each."""
    monkeypatch.setattr(checkpoint, "_SHARE", float("inf"))
    added, plus = [], SummedRows.plus

    def counting(self, X, y, *others):
        added.append(len(X))
        return plus(self, X, y, *others)

    monkeypatch.setattr(SummedRows, "plus", counting)
    return added


def test_a_fit_that_was_killed_goes_on_with_the_same_numbers(data, whole, counted, tmp_path):
    arguments = [sys.executable, "-c", KILLED, os.path.dirname(__file__), str(tmp_path / "far")]
    assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    pieces = Pieces(data)
    model = PNCRegressor(**OPTIONS).fit_stream(pieces, tmp_path / "far")
    assert pieces.passes == 1
    assert counted == [1700, 1700, 1700, 400]  # five pieces were there
    assert_same(model, whole)
    with pytest.raises(ModelFileError, match=r"goes on from it|fit_stream\(pieces, checkpoint"):
        PNCRegressor.load(tmp_path / "far")


def test_a_generator_goes_on_too(data, counted, tmp_path):
    uninterrupted = PNCRegressor(**OPTIONS).fit_stream(iter(Pieces(data)))

    def breaks():
        for number, piece in enumerate(Pieces(data)):
            if number == 7:
                raise KeyboardInterrupt
            yield piece

    with pytest.raises(KeyboardInterrupt):
        PNCRegressor(**OPTIONS).fit_stream(breaks(), tmp_path / "here")
    counted.clear()
    again = PNCRegressor(**OPTIONS).fit_stream(iter(Pieces(data)), tmp_path / "here")
    assert sum(counted) == 14_000 - 7 * 1700
    assert_same(again, uninterrupted)


def test_a_checkpoint_is_written_in_a_small_part_of_the_time(whole, monkeypatch, tmp_path):
    clock, written = [0.0], []

    def write(*_):
        written.append(clock[0])
        clock[0] += 3.0

    monkeypatch.setattr(checkpoint, "write_model", write)
    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    kept = checkpoint.Checkpoint(tmp_path / "new", "PNCRegressor", {}, _begun=0.0)
    for second in range(1000):
        clock[0] = max(clock[0], float(second))
        kept.write_if_due(whole._summed, Landmarks())
    assert written[0] == 0
    assert 10 <= len(written) <= 17
    assert 3 * len(written) <= 0.05 * 1000 + 3


@pytest.fixture
def half_way(data, counted, tmp_path):
    PNCRegressor(**OPTIONS).fit_stream(Pieces(data), tmp_path / "kept")
    return tmp_path / "kept"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"options": {"random_state": 1}}, "is of another model \\(random_state differs\\)"),
        ({"options": {"solver": Landmarks(count=50)}}, "is of another model \\(solver differs\\)"),
        ({"data": lambda X, y: (X, y + 1)}, "is of other data"),
        ({"data": lambda X, y: (X[:, :2], y)}, "is of other data"),
        ({"data": lambda X, y: (X[:13_000], y[:13_000])}, "the pieces come to 13,000 rows, and 14,000 had been added"),
        ({"data": lambda X, y: (X[:500], y[:500])}, "is of other data"),
        ({"file": "tensors.safetensors"}, "was changed after it was saved"),
        ({"file": "model.json"}, "was changed after it was saved.*begin anew in another folder"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(data, half_way, change, words):
    before = {file.name: file.read_bytes() for file in half_way.iterdir()}
    if "file" in change:
        damaged = half_way / change["file"]
        content = before[damaged.name]
        in_json = content.replace(b'"noise_kind"', b'"noise_mind"')
        damaged.write_bytes(in_json if damaged.suffix == ".json" else content[:2000] + b"!!" + content[2002:])
    pieces = Pieces(change.get("data", lambda *both: both)(*data))
    with pytest.raises(InvalidInputError, match=words) as caught:
        PNCRegressor(**OPTIONS | change.get("options", {})).fit_stream(pieces, half_way)
    assert not str(caught.value).startswith("piece")
    if "file" not in change:
        assert {file.name: file.read_bytes() for file in half_way.iterdir()} == before
    else:
        damaged.write_bytes(before[damaged.name])
    PNCRegressor(**OPTIONS | {"verbose": False, "n_jobs": 1}).fit_stream(Pieces(data), half_way)


def test_a_folder_of_something_else_is_no_checkpoint(data, whole, tmp_path):
    whole.save(tmp_path / "model")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    for name, words in (("model", "holds a PNCRegressor and not a"), ("full", "holds no unseed model")):
        pieces = Pieces(data)
        with pytest.raises(InvalidInputError, match=words):
            PNCRegressor(**OPTIONS).fit_stream(pieces, tmp_path / name)
        assert pieces.passes == 0
    assert_same(PNCRegressor.load(tmp_path / "model"), whole)


def test_a_full_disk_leaves_the_checkpoint_that_was_there(data, whole, counted, tmp_path, monkeypatch):
    folder, write, files = tmp_path / "kept", Path.write_bytes, []

    def write_until_full(self, content):
        files.append(self.name)
        if files.count("tensors.safetensors") == 4:
            write(self, content[:1000])
            raise OSError(28, "No space left on device")
        return write(self, content)

    monkeypatch.setattr(Path, "write_bytes", write_until_full)
    with pytest.raises(ModelFileError, match=r"No space left on device.*free space.*what was there is still there"):
        PNCRegressor(**OPTIONS).fit_stream(Pieces(data), folder)
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["kept"]
    assert json.loads((folder / "model.json").read_text())["fitted"]["summed"]["sums"]["n_rows"] == 3 * 1700
    assert_same(PNCRegressor(**OPTIONS).fit_stream(Pieces(data), folder), whole)


def test_a_model_that_was_read_takes_further_rows(data, whole, tmp_path):
    X, y = rows(3000, seed=5)
    whole.save(tmp_path / "model")
    here = PNCRegressor(**OPTIONS).fit(*data).partial_fit(X, y)
    again = PNCRegressor.load(tmp_path / "model").partial_fit(X, y)
    assert_same(again, here)
    names = [name for name, table in json.loads((tmp_path / "model" / "model.json").read_text())["tensors"].items()]
    halves = [name for name in names if name.endswith(".inner")]
    assert len(halves) == len(whole._summed.sums.summands)


def test_sums_are_kept_in_half(whole):
    state = whole._summed.sums.summands[0].state()
    assert state["inner"].numel() == 100 * 101 // 2


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_of_a_memory_map_no_copy_is_made(tmp_path, dtype):
    rng = np.random.default_rng(0)
    n, d = 300_000, 20
    X = np.memmap(tmp_path / "X", dtype, "w+", shape=(n, d))
    y = np.memmap(tmp_path / "y", dtype, "w+", shape=(n,))
    X[:] = rng.standard_normal((n, d))
    y[:] = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(n)
    options = OPTIONS | {"solver": Landmarks(count=20), "regularization": 1e-3, "interval": "infinitesimal_jackknife"}
    PNCRegressor(**options).fit(X[:11_000], y[:11_000])  # imports
    tracemalloc.start()
    model = PNCRegressor(**options).fit(X, y)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 0.7 * 8 * n * d
    few = np.array(X[:100], dtype=np.float64)
    in_memory = PNCRegressor(**options).fit(np.array(X, dtype=np.float64).tolist(), y.tolist())
    np.testing.assert_allclose(model.predict(few), in_memory.predict(few), rtol=0, atol=1e-9)


def test_a_bad_row_of_a_large_array_has_its_place(data):
    X = np.tile(data[0], (6, 1))
    y = np.tile(data[1], 6)
    X[70_000, 1] = np.inf
    with pytest.raises(InvalidInputError, match=r"rows 65,536 and after: Input X contains infinity"):
        PNCRegressor(**OPTIONS).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PNCRegressor(**OPTIONS).fit(data[0], y)


def write_parquet(path, X, y, **further):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {"id": [str(row) for row in range(len(X))], "y": y, **dict(zip("abc", X.T, strict=False)), **further}
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.table(columns), path, row_group_size=1000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("rows")
    bounds = (0, 3_333, 9_000, 14_000)
    for number, (start, stop) in enumerate(itertools.pairwise(bounds)):
        write_parquet(path / f"part-{number}.parquet", data[0][start:stop], data[1][start:stop])
    return path


def test_a_folder_of_parquet_files_is_all_their_rows(folder, data, whole):
    pieces = parquet_pieces(folder, "y", features=["a", "b", "c"], rows=700)
    found = list(pieces)
    assert len(pieces) == len(found) == len(list(pieces))
    assert max(len(X) for X, _ in found) == 700
    np.testing.assert_array_equal(np.concatenate([X for X, _ in found]), data[0])
    np.testing.assert_array_equal(np.concatenate([y for _, y in found]), data[1])
    assert_same(PNCRegressor(**OPTIONS).fit_stream(pieces), whole)
    two = next(iter(parquet_pieces(folder / "part-1.parquet", ["y", "a"], features=["c", "b"])))
    np.testing.assert_array_equal(two[0], data[0][3_333:4_333, [2, 1]])
    assert two[1].shape == (1000, 2)


def test_columns_that_nobody_asks_for_are_not_read(tmp_path, data):
    write_parquet(tmp_path / "rows.parquet", data[0][:600], data[1][:600])
    corrupt(tmp_path / "rows.parquet", "id")
    ((X, _),) = parquet_pieces(tmp_path, "y", features=["a"])
    np.testing.assert_array_equal(X, data[0][:600, :1])
    with pytest.raises(InvalidInputError, match=r"column 'id' of '.*rows.parquet' has string and not numbers"):
        parquet_pieces(tmp_path, "y")


def broken(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def corrupt(path, column="a"):
    group = pytest.importorskip("pyarrow.parquet").ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(place) for place in range(group.num_columns)]
    (chunk,) = (chunk for chunk in chunks if chunk.path_in_schema == column)
    content, start = path.read_bytes(), chunk.dictionary_page_offset or chunk.data_page_offset
    path.write_bytes(content[:start] + b"~" * 40 + content[start + 40 :])


def without_b(path):
    write_parquet(path, rows(10)[0][:, :0], rows(10)[1], a=rows(10)[0][:, 0])


def with_whole_numbers(path):
    write_parquet(path, rows(10)[0][:, :0], rows(10)[1], a=np.arange(10), b=np.arange(10))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (broken, r"'.*part-1.parquet' is not a Parquet file that can be read"),
        (corrupt, r"'.*part-1.parquet' is not a Parquet file that can be read"),
        (without_b, r"'.*part-1.parquet' has no column 'b', and '.*part-0.parquet' has"),
        (with_whole_numbers, r"column 'a' of '.*part-1.parquet' has int64, and that of '.*part-0.parquet' has double"),
    ],
)
def test_a_file_that_is_unlike_the_others_is_named(tmp_path, data, change, words):
    for number in range(3):
        write_parquet(tmp_path / f"part-{number}.parquet", data[0][:600], data[1][:600])
    change(tmp_path / "part-1.parquet")
    with pytest.raises(InvalidInputError, match=words):
        PNCRegressor(network=RELU).fit_stream(parquet_pieces(tmp_path, "y", features=["a", "b"]))


def test_what_is_no_table_of_rows_is_named(folder, tmp_path):
    for path, options, words in (
        (tmp_path, {}, "has no Parquet file in it"),
        (tmp_path / "nowhere", {}, "is not a Parquet file that can be read"),
        (folder, {"features": ["d"]}, "features='d' is not a column"),
        (folder, {"features": []}, "features: .* has no column for it"),
        (folder, {"rows": 0}, "rows=0"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            parquet_pieces(path, "y", **options)
    with pytest.raises(InvalidInputError, match="target='z' is not a column"):
        parquet_pieces(folder, "z")


def with_nan(X, y):
    return np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X), y


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X[:, :2], y), "X has 2 features, but PNCRegressor is expecting 3 features"),
        (lambda X, y: (np.column_stack([X, X]), y), "X has 6 features"),
        (with_nan, "Input X contains NaN"),
        (lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.inf, y)), "contains infinity"),
        (lambda X, y: (np.where(X > 0.9, "many", X.astype(str)), y), "holds text, such as"),
        (lambda X, y: (X, np.array(["few"] * len(y), dtype=object)), "holds text, such as"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X, np.column_stack([y, y])), "y has 2 columns, and the rows before had 1"),
        (lambda X, y: (X, y[1:]), "inconsistent numbers of samples"),
        (lambda X, y: X, r"a piece should be a pair \(X, y\)"),
    ],
)
def test_a_bad_piece_is_named_and_reaches_no_sum(data, tmp_path, change, words):
    pieces = list(Pieces(data, 300))
    bad = [*pieces[:36], change(*pieces[36]), *pieces[37:]]
    again = PNCRegressor(**OPTIONS)
    with pytest.raises(ValueError, match=f"^piece 37: .*{words}"):
        again.fit_stream(bad, tmp_path / "never")
    assert not (tmp_path / "never").exists()  # all pieces are looked at before one is used
    once = PNCRegressor(**OPTIONS)
    with pytest.raises(ValueError, match=f"^piece 37: .*{words}"):
        once.fit_stream(iter(bad), tmp_path / "once")
    good = PNCRegressor(**OPTIONS).fit_stream(iter(pieces[:36]))
    assert_same(once, good)
    assert once.n_rows_ == 36 * 300


def test_a_constant_y_in_pieces_is_learned(data):
    pieces = [(X, np.full(len(X), 2.5)) for X, _ in Pieces(data)]
    model = PNCRegressor(**OPTIONS).fit_stream(pieces)
    mean, intervals = model.predict_interval(POINTS)
    np.testing.assert_allclose(mean, 2.5, rtol=1e-9)
    assert np.isfinite(intervals).all()


def test_landmarks_are_no_more_than_rows_can_give(data):
    X, y = data[0][::50], data[1][::50]
    model = PNCRegressor(**OPTIONS | {"solver": Landmarks(count=4096)}).fit_stream([(X[:100], y[:100]), (X[100:], y[100:])])
    assert sum(model._replicates.trained.spaces.sizes) <= 280
    exact = PNCRegressor(**OPTIONS | {"solver": "exact"}).fit(X, y)
    assert np.sqrt(np.mean((model.predict(POINTS) - exact.predict(POINTS)) ** 2)) < 0.05


def test_too_little_memory_for_landmarks_is_said_before_anything_is_done(data, monkeypatch):
    def not_yet(*_):
        raise AssertionError("no network was to be chosen yet")

    monkeypatch.setattr(summed, "choose_for_pnc", not_yet)
    monkeypatch.setattr(_cost, "available_bytes", lambda device: 2.0e8)
    words = r"14,000 rows in spaces of 4,096 landmarks need .* GB and 0.2 GB are available; solver=Landmarks\(count=\d+\) needs"
    for fits in (lambda one: one.fit(*data), lambda one: one.fit_stream(Pieces(data))):
        with pytest.raises(NotEnoughMemoryError, match=words):
            fits(PNCRegressor(**OPTIONS | {"solver": Landmarks(count=4096)}))


class Unsteady(Pieces):
    """Something else at every pass."""

    def __init__(self, data, change):
        super().__init__(data)
        self.change = change

    def __iter__(self):
        self.passes += 1
        return iter(list(Pieces(self.data)) if self.passes == 1 else self.change(list(Pieces(self.data))))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda pieces: pieces[:-1], "14,000 rows were looked at and 13,600 added up: give a list, or an object whose"),
        (lambda pieces: [*pieces, pieces[0]], "14,000 rows were looked at and 15,700 added up"),
        (lambda pieces: pieces[::-1], "the first rows are not those that were looked at before"),
        (lambda pieces: [], "pieces is empty: .* whose __iter__ begins anew"),
    ],
)
def test_pieces_that_are_others_at_the_second_pass_are_refused(data, change, words):
    model = PNCRegressor(**OPTIONS)
    with pytest.raises(InvalidInputError, match=words):
        model.fit_stream(Unsteady(data, change))
    with pytest.raises(NotFittedError):
        model.predict(POINTS)


def test_a_checkpoint_of_a_fit_that_is_done_takes_more_pieces(data, counted, half_way):
    counted.clear()
    X, y = rows(3000, seed=5)
    more = PNCRegressor(**OPTIONS).fit_stream([*Pieces(data), (X, y)], half_way)
    assert counted == [3000]
    assert_same(more, PNCRegressor(**OPTIONS).fit(*data).partial_fit(X, y))
