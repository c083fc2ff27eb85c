"""Many rows, and something is wrong with them: one sentence says what and where, and nothing is lost that was there before."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from test_commands import refused
from test_streams import OPTIONS, POINTS, RELU, Pieces, assert_same, corrupt, rows, write_parquet
from unseed import Landmarks, PNCRegressor, parquet_pieces
from unseed._estimators import checkpoint, summed
from unseed.engines import _cost
from unseed.errors import InvalidInputError, ModelFileError, NotEnoughMemoryError, UnseedError
from unseed_app.commands import fit as command
from unseed_app.commands.console import Console
from unseed_app.commands.inputs import TableFile, TableModel

GIVEN = {**OPTIONS, "solver": Landmarks(count=40), "regularization": 1e-3}
SIZE, BAD = 300, 36  # rows of a piece, and the place of the one that is at fault: it is called piece 37


def check_sentence(error, *words):
    """One sentence on one line, in which these words are."""
    text = str(error)
    assert "\n" not in text
    assert not re.search(r"[.!] [A-Z]", text), text
    assert re.search(".*".join(words), text), text


def answers(model):
    return [part for kind in ("confidence", "prediction") for part in model.predict_interval(POINTS, kind=kind)]


def assert_as_before(model, before):
    for now, then in zip(answers(model), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.fixture(scope="module")
def data():
    return rows(12_000)


@pytest.fixture(scope="module")
def whole(data):
    return PNCRegressor(**GIVEN).fit(*data)


@pytest.fixture
def at_every_piece(monkeypatch):
    """Checkpoints, not in a twentieth of the time."""
    monkeypatch.setattr(checkpoint, "_SHARE", float("inf"))


# A piece


def with_cell(values, place, cell):
    changed = values.astype(object if isinstance(cell, str) else values.dtype)
    changed[place] = cell
    return changed


PIECES = {
    "fewer columns": (lambda X, y: (X[:, :2], y), ["X has 2 features, but PNCRegressor is expecting 3 features"]),
    "more columns": (lambda X, y: (np.column_stack([X, X]), y), ["X has 6 features"]),
    "NaN": (lambda X, y: (with_cell(X, (7, 1), np.nan), y), ["X has NaN in row 7, column 1: remove the row, or give a number"]),
    "infinity in y": (lambda X, y: (X, with_cell(y, 3, np.inf)), ["y has infinity in row 3: remove"]),
    "text": (lambda X, y: (with_cell(X, (5, 2), "many"), y), ["X has 'many', which is no number, in row 5, column 2: remove"]),
    "text in y": (lambda X, y: (X, with_cell(y, 4, "few")), ["y has 'few', which is no number, in row 4: remove"]),
    "nothing": (lambda X, y: (X[:0], y[:0]), ["X has no rows: leave this piece out"]),
    "two outputs": (lambda X, y: (X, np.column_stack([y, y])), ["y has 2 columns, and the rows before had 1"]),
    "one y too few": (lambda X, y: (X, y[1:]), ["inconsistent numbers of samples"]),
    "no pair": (lambda X, y: X, [r"a piece should be a pair \(X, y\)"]),
}


@pytest.mark.parametrize("fault", PIECES)
def test_a_bad_piece_is_named_and_reaches_no_sum(fault, data, whole, at_every_piece, tmp_path):
    change, words = PIECES[fault]
    good = list(Pieces(data, SIZE))
    bad = [*good[:BAD], change(*good[BAD]), *good[BAD + 1 :]]
    with pytest.raises(ValueError, match="piece 37") as caught:
        PNCRegressor(**GIVEN).fit_stream(bad, tmp_path / "never")
    check_sentence(caught.value, "^piece 37: ", *words)
    assert not (tmp_path / "never").exists()  # all pieces are looked at before one is used

    once = PNCRegressor(**GIVEN)
    with pytest.raises(ValueError, match="piece 37") as caught:
        once.fit_stream(iter(bad), tmp_path / "kept")
    check_sentence(caught.value, "^piece 37: ", *words)
    assert once.n_rows_ == BAD * SIZE
    before = answers(once)
    if fault != "no pair":
        with pytest.raises(InvalidInputError) as caught:
            once.partial_fit(*bad[BAD])
        check_sentence(caught.value, *words)
    assert_as_before(once, before)
    X, y = (np.concatenate(parts) for parts in zip(*good[BAD:], strict=True))
    assert_same(once.partial_fit(X, y), whole)
    assert_same(PNCRegressor(**GIVEN).fit_stream(iter(good), tmp_path / "kept"), whole)  # goes on from the last good piece


def test_columns_of_a_frame_are_named(data):
    pd = pytest.importorskip("pandas")
    X, y = (pd.DataFrame(data[0][:500], columns=list("abc")), data[1][:500])
    model = PNCRegressor(network=RELU, regularization=1e-3, random_state=0).partial_fit(X, y)
    before = model.predict(X)
    for frame, words in (
        (X.assign(b="many"), ["X has 'many', which is no number, in row 0, column 'b'"]),
        (X.assign(c=np.where(np.arange(500) == 9, np.nan, 1.0)), ["X has NaN in row 9, column 'c'"]),
        (X.assign(c=None), ["X has NaN in row 0, column 'c'"]),
    ):
        with pytest.raises(InvalidInputError) as caught:
            model.partial_fit(frame, y)
        check_sentence(caught.value, *words)
    with pytest.raises(InvalidInputError, match="piece 2: The feature names should match those that were passed") as caught:
        PNCRegressor(network=RELU).fit_stream([(X, y), (X.rename(columns={"c": "d"}), y)])
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(model.predict(X), before)


# What is unusual, and still makes a model


def test_a_constant_y_is_learned(data):
    X, y = data[0], np.full(len(data[0]), 2.5)
    for model in (
        PNCRegressor(**GIVEN).fit(X, y),
        PNCRegressor(**OPTIONS).fit_stream([(X[:5_000], y[:5_000]), (X[5_000:], y[5_000:])]),
        PNCRegressor(**OPTIONS).partial_fit(X[:11_000], y[:11_000]).partial_fit(X[11_000:], y[11_000:]),
    ):
        mean, intervals = model.predict_interval(POINTS)
        np.testing.assert_allclose(mean, 2.5, rtol=1e-9)
        np.testing.assert_allclose(intervals, 2.5, rtol=1e-6)
        np.testing.assert_allclose(model.predict_interval(POINTS, kind="prediction")[1], 2.5, rtol=1e-6)
        assert model.diagnose().handling == model.handling_


def test_landmarks_are_no_more_than_rows_can_give(data):
    X, y = data[0][::40], data[1][::40]
    options = {**OPTIONS, "solver": Landmarks(count=4096)}
    exact = PNCRegressor(**options | {"solver": "exact"}).fit(X, y).predict(POINTS)
    for model in (
        PNCRegressor(**options).fit(X, y),
        PNCRegressor(**options).fit_stream([(X[:100], y[:100]), (X[100:], y[100:])]),
    ):
        assert sum(model._replicates.trained.spaces.sizes) <= len(X)
        assert np.sqrt(np.mean((model.predict(POINTS) - exact) ** 2)) < 0.05


def test_fewer_rows_than_sums_are_drawn_from_wait_for_others(data):
    X, y = data[0][:300], data[1][:300]
    model = PNCRegressor(**GIVEN).partial_fit(X[:30], y[:30])
    for asks in (lambda: model.predict(POINTS), lambda: PNCRegressor(**GIVEN).fit(X[:30], y[:30])):
        with pytest.raises(InvalidInputError) as caught:
            asks()
        check_sentence(caught.value, r"solver=Landmarks\(count=40\)", "at least 64; X has 30: use solver='exact'")
    later = model.partial_fit(X[30:], y[30:])
    assert_same(later, PNCRegressor(**GIVEN).fit(X, y))


# Memory, and a disk


def test_too_little_memory_for_landmarks_is_said_before_anything_is_done(data, monkeypatch):
    def not_yet(*_):
        raise AssertionError("no network was to be chosen yet")

    few = {**GIVEN, "solver": Landmarks(count=4096), "network": RELU}
    held = PNCRegressor(**few).partial_fit(data[0][:500], data[1][:500])
    before = answers(held)
    monkeypatch.setattr(summed, "choose_for_pnc", not_yet)
    monkeypatch.setattr(_cost, "available_bytes", lambda device: 2.0e8)
    words = "rows in spaces of 4,096 landmarks need .* GB and 0.2 GB are available; solver=Landmarks.count=.*. needs"
    pieces = Pieces(data, 900)
    seen = []
    for fits in (
        lambda: PNCRegressor(**few).fit(*data),
        lambda: PNCRegressor(**few).partial_fit(*data),
        lambda: PNCRegressor(**few).fit_stream(seen.append(len(X)) or (X, y) for X, y in pieces),
        lambda: PNCRegressor(**few).fit_stream(pieces),
        lambda: held.partial_fit(*data),
    ):
        with pytest.raises(NotEnoughMemoryError) as caught:
            fits()
        check_sentence(caught.value, words)
    assert sum(seen) == 10_800  # not one piece more than it takes to know that they are many
    monkeypatch.undo()
    assert_as_before(held, before)


@pytest.fixture(params=["tmpfs", "write"])
def disk(request, tmp_path, monkeypatch):
    """A folder, and how to fill its disk and to make room again: a real one, or one whose write call says so."""
    if request.param == "write":
        write = Path.write_bytes

        def write_until_full(self, content):
            write(self, content[:1000])
            raise OSError(28, "No space left on device")

        yield SimpleNamespace(
            folder=tmp_path, fill=lambda: monkeypatch.setattr(Path, "write_bytes", write_until_full), free=monkeypatch.undo
        )
        return
    folder = tmp_path / "small"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("a small disk of its own needs the right to mount one")

    def fill():
        with (folder / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"." * 4096):
                pass

    try:
        yield SimpleNamespace(folder=folder, fill=fill, free=(folder / "filler").unlink)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_checkpoint_that_was_there(disk, data, whole, at_every_piece):
    def filling():
        for number, piece in enumerate(Pieces(data, SIZE)):
            if number == BAD:
                disk.fill()
            yield piece

    kept = disk.folder / "kept"
    model = PNCRegressor(**GIVEN)
    with pytest.raises(ModelFileError) as caught:
        model.fit_stream(filling(), kept)
    check_sentence(caught.value, "kept cannot be written", "No space left on device", "what was there is still there")
    disk.free()
    assert [file.name for file in disk.folder.iterdir()] == ["kept"]
    added = []
    again = PNCRegressor(**GIVEN).fit_stream((added.append(1) or piece for piece in Pieces(data, SIZE)), kept)
    assert_same(again, whole)
    assert model.n_rows_ == (BAD + 1) * SIZE  # what was added before it could not be written down is in the model


# A checkpoint of something else


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"options": {"random_state": 1}}, "is of another model \\(random_state differs\\)"),
        ({"options": {"solver": Landmarks(count=50)}}, "is of another model \\(solver differs\\)"),
        ({"data": lambda X, y: (X, y + 1)}, "is of other data"),
        ({"data": lambda X, y: (X[:, :2], y)}, "is of other data"),
        ({"data": lambda X, y: (X[:11_000], y[:11_000])}, "the pieces come to 11,000 rows, and 12,000 had been added"),
        ({"data": lambda X, y: (X[:500], y[:500])}, "is of other data"),
        ({"file": "tensors.safetensors"}, "was changed after it was saved"),
        ({"file": "model.json"}, "was changed after it was saved.*begin anew in another folder"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(data, whole, at_every_piece, tmp_path, change, words):
    folder = tmp_path / "kept"
    PNCRegressor(**GIVEN).fit_stream(Pieces(data, 3000), folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    if "file" in change:
        damaged = folder / change["file"]
        content = before[damaged.name]
        in_json = content.replace(b'"noise_kind"', b'"noise_mind"')
        damaged.write_bytes(in_json if damaged.suffix == ".json" else content[:2000] + b"!!" + content[2002:])
    other = PNCRegressor(**GIVEN | change.get("options", {})).fit(data[0][:500], data[1][:500])
    answered = answers(other)
    with pytest.raises(InvalidInputError) as caught:
        other.fit_stream(Pieces(change.get("data", lambda *both: both)(*data)), folder)
    check_sentence(caught.value, "kept", words) if "come to" not in words else check_sentence(caught.value, words)
    assert not str(caught.value).startswith("piece")
    if "options" in change or change.get("file") == "model.json":
        assert_as_before(other, answered)  # it was refused before the model was given up
    if "file" not in change:
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    else:
        damaged.write_bytes(before[damaged.name])
    assert_same(PNCRegressor(**GIVEN | {"verbose": False, "n_jobs": 1}).fit_stream(Pieces(data), folder), whole)


# Files


def cut_in_half(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def without_b(path):
    write_parquet(path, rows(10)[0][:, :0], rows(10)[1], a=rows(10)[0][:, 0])


def with_whole_numbers(path):
    write_parquet(path, rows(10)[0][:, :0], rows(10)[1], a=np.arange(10), b=np.arange(10), c=np.arange(10))


def with_text(path):
    words = ["many"] * 10
    write_parquet(path, rows(10)[0][:, :0], rows(10)[1], a=words, b=words, c=words)


def with_nan(path):
    write_parquet(path, np.where(np.arange(30).reshape(10, 3) == 7, np.nan, 0.5), rows(10)[1])


FILES = {  # what Python says, and what the command
    "cut in half": (cut_in_half, r"part-3.parquet' is not a Parquet file that can be read", "part-3.parquet is a damaged"),
    "a page of something else": (corrupt, r"part-3.parquet' is not a Parquet file that", "part-3.parquet is a damaged"),
    "no column b": (
        without_b,
        r"part-3.parquet' has no column 'b', and '.*part-0",
        r"part-3.parquet has the columns \['id', 'y', 'a'\]",
    ),
    "other numbers": (with_whole_numbers, r"column 'a' of '.*part-3.parquet' has int64, and that of '.*part-0", None),
    "text": (with_text, "column 'a' of '.*part-3.parquet' has string", "part-3.parquet, row group 1, row 1, column 'a'"),
    "NaN": (with_nan, "piece 13: X has NaN in row 2, column 1", "part-3.parquet, row group 1, row 3, column 'b'"),
}


@pytest.fixture
def folder(data, tmp_path):
    path = tmp_path / "rows"
    for number in range(3):
        some = slice(number * 3600, (number + 1) * 3600)
        write_parquet(path / f"part-{number}.parquet", data[0][some], data[1][some])
    return path


def good_file(path, data):
    write_parquet(path, data[0][10_800:], data[1][10_800:])


@pytest.mark.parametrize("fault", FILES)
def test_a_file_that_is_unlike_the_others_is_named(fault, folder, data, whole, at_every_piece, tmp_path):
    change, words, _ = FILES[fault]

    def fitted():
        return PNCRegressor(**GIVEN).fit_stream(parquet_pieces(folder, "y", features=list("abc")), tmp_path / "kept")

    assert fitted().n_rows_ == 10_800
    before = (tmp_path / "kept" / "model.json").read_bytes()
    good_file(folder / "part-3.parquet", data)
    change(folder / "part-3.parquet")
    with pytest.raises(InvalidInputError) as caught:
        fitted()
    check_sentence(caught.value, words)
    assert (tmp_path / "kept" / "model.json").read_bytes() == before
    good_file(folder / "part-3.parquet", data)
    assert_same(fitted(), whole)


@pytest.mark.parametrize("fault", [fault for fault, (_, _, words) in FILES.items() if words])
def test_a_command_names_it_too(fault, folder, data, at_every_piece, tmp_path, monkeypatch, capsys):
    change, _, words = FILES[fault]
    monkeypatch.setattr(command, "PNCRegressor", partial(PNCRegressor, network=RELU, regularization=1e-3))
    kept = tmp_path / "kept"
    options = {"solver": "landmarks", "landmarks": 40, "interval": "auto", "random_state": 0, "device": "cpu", "n_jobs": None}

    def fitted(name, **others):
        file, out = TableFile(folder), tmp_path / name
        command.fit(file, "y", "id", out, Console(quiet=True), dry_run=False, cluster=None, **options, **others)
        return TableModel.load(out).estimator

    fitted("first", checkpoint=kept)
    before = (kept / "model.json").read_bytes()
    good_file(folder / "part-3.parquet", data)
    change(folder / "part-3.parquet")
    asked = [
        "--target",
        "y",
        "--drop",
        "id",
        "--solver",
        "landmarks",
        "--landmarks",
        40,
        "--checkpoint",
        kept,
        "--device",
        "cpu",
    ]
    said = refused(monkeypatch, capsys, "fit", folder, *asked, "--quiet", "--out", tmp_path / "never")
    check_sentence(said.rstrip("\n"), words)
    assert not (tmp_path / "never").exists()
    assert (kept / "model.json").read_bytes() == before
    good_file(folder / "part-3.parquet", data)
    assert fitted("again", checkpoint=kept).n_rows_ == 12_000
    again, whole = (PNCRegressor.load(tmp_path / "again"), fitted("whole"))
    X = whole._replicates.checked.X[:50]
    for model in (again, whole):
        del model.feature_names_in_
    np.testing.assert_allclose(again.predict_interval(X)[1], whole.predict_interval(X)[1], atol=1e-9)


# Dask


@pytest.mark.filterwarnings("ignore")
def test_partitions_that_do_not_go_together_are_refused(data):
    da, pd, dd = map(pytest.importorskip, ("dask.array", "pandas", "dask.dataframe"))
    X, y = rows(300)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    known = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
    model = PNCRegressor(**GIVEN).partial_fit(*data)
    before = answers(model)
    for pair, words in (
        (
            (frame.values, known[1]),
            r"X is a Dask array whose chunk sizes are not known: call X = X.compute_chunk_sizes\(\) first",
        ),
        ((known[0], frame[0].values), r"y is a Dask array whose chunk sizes are not known: call y = y.compute_chunk_sizes\(\)"),
        ((known[0], da.from_array(y, chunks=150)), r"cut at different rows \(3 partitions of rows \(100, 100, 100\), 2 of"),
        ((known[0], da.from_array(y, chunks=((100, 50, 150),))), "cut at different rows"),
        ((frame, dd.from_pandas(pd.Series(y), npartitions=2)), "cut at different rows"),
        ((frame, da.from_array(y, chunks=((100, 50, 150),))), "partition 2 has 100 rows of X and 50 of y"),
        ((known[0], y), "X is a collection of Dask and y is not"),
        ((X, known[1]), "y is a collection of Dask and X is not"),
        ((da.zeros((0, 3)), da.zeros(0)), "no rows in any of its partitions"),
        (
            (da.from_array(with_cell(X, (150, 1), np.nan), chunks=(100, 3)), known[1]),
            "partition 2: X has NaN in row 50, column 1",
        ),
    ):
        for fits in (PNCRegressor(network=RELU).fit, PNCRegressor(network=RELU).partial_fit, model.partial_fit):
            with pytest.raises(InvalidInputError) as caught:
                fits(*pair)
            check_sentence(caught.value, words)
    assert_as_before(model, before)


@pytest.mark.filterwarnings("ignore")
def test_workers_that_die_again_and_again_leave_the_model_as_it_was(data, whole, tmp_path):
    distributed, dask, da = map(pytest.importorskip, ("distributed", "dask", "dask.array"))
    armed = tmp_path / "armed"

    def killing(X, block_info=None):
        if block_info and block_info[0]["chunk-location"][0] == 2 and armed.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return X

    X, y = (da.from_array(values, chunks=(1_000, *values.shape[1:])) for values in data)
    first, later = (X[:2_000], y[:2_000]), (X[2_000:].map_blocks(killing, dtype=X.dtype, meta=np.empty((0, 3))), y[2_000:])
    with warnings.catch_warnings(), dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        warnings.simplefilter("ignore")
        options = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as local, distributed.Client(local):
            model = PNCRegressor(**GIVEN).partial_fit(*first)
            before = answers(model)
            armed.touch()
            with pytest.raises(UnseedError) as caught:
                model.partial_fit(*later)
            check_sentence(caught.value, "workers of the cluster died again and again", "smaller partitions, or give")
            assert model.n_rows_ == 2_000
            assert_as_before(model, before)
            assert_same(model.partial_fit(X[2_000:], y[2_000:]), whole)
