"""Dask arrays and frames as X and y: partitions are added up where they are, and come to the model of all rows."""

import os
import signal
import warnings
from operator import getitem

import numpy as np
import pytest

from test_streams import OPTIONS, RELU, assert_same, rows, sorted_rows
from unseed import PNCRegressor
from unseed._estimators import partitions as parts

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
CUTS = (1000, 0, 4000, 37, 3963, 5000)  # one is empty


MANY = pytest.param(4, id="four workers", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=[pytest.param(1, id="one worker"), pytest.param(2, id="two workers"), MANY])
def cluster(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_workers": request.param, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as local, distributed.Client(local) as client:
            yield client


@pytest.fixture(scope="module")
def data():
    return sorted_rows()


@pytest.fixture(scope="module")
def whole(data):
    return PNCRegressor(**OPTIONS).fit(*data)


def as_arrays(X, y):
    return da.from_array(X, chunks=(CUTS, 2)), da.from_array(y, chunks=(CUTS,))


def as_frames(X, y):
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    ends = np.cumsum(CUTS)
    pieces = [parts._task(getitem, frame, slice(int(end - size), int(end))) for size, end in zip(CUTS, ends, strict=True)]
    pieces = dd.from_delayed(pieces, meta=frame[:0])
    return pieces[["a", "b", "c"]], pieces["y"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [as_arrays, as_frames])
def test_partitions_come_to_the_model_of_all_rows(cluster, data, whole, kind, monkeypatch):
    def not_here(*_, **__):
        raise AssertionError("this was to be done by a worker")

    monkeypatch.setattr(parts.SummedRows, "plus", not_here)
    model = PNCRegressor(**OPTIONS).fit(*kind(*data))
    if kind is as_frames:
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        model = _without_names(model)
    assert_same(model, whole)


def _without_names(model):
    del model.feature_names_in_
    return model


@pytest.mark.filterwarnings("ignore")
def test_partitions_are_taken_by_a_model_that_is_there(cluster, data):
    X, y = rows(11_000, seed=3)
    here = PNCRegressor(**OPTIONS).partial_fit(X, y).partial_fit(*data)
    far = PNCRegressor(**OPTIONS).partial_fit(X, y).partial_fit(*as_arrays(*data))
    assert_same(far, here)
    from_nothing = PNCRegressor(**OPTIONS).partial_fit(*as_arrays(*data))
    assert_same(from_nothing, PNCRegressor(**OPTIONS).partial_fit(*data))


@pytest.mark.filterwarnings("ignore")
def test_a_bad_partition_is_named_and_leaves_the_model_as_it_was(cluster, data):
    X, y = data[0].copy(), data[1]
    X[9_500, 1] = X[1_001, 1] = np.nan
    model = PNCRegressor(**OPTIONS).partial_fit(*data)
    before = model.predict(X[:5])
    for fails in (model.partial_fit, PNCRegressor(**OPTIONS).fit, PNCRegressor(**OPTIONS).partial_fit):
        with pytest.raises(ValueError, match="partition 3: X has NaN in row 1, column 1: remove the row, or give a number"):
            fails(*as_arrays(X, y))
    with pytest.raises(ValueError, match="2 features"):
        model.partial_fit(da.from_array(X[:100, :2], chunks=(50, 2)), da.from_array(y[:100], chunks=50))
    assert model.n_rows_ == 14_000
    np.testing.assert_array_equal(model.predict(X[:5]), before)


@pytest.mark.filterwarnings("ignore")
def test_few_rows_come_here():
    X, y = rows(300)
    options = {"network": RELU, "random_state": 0}
    near = PNCRegressor(**options).fit(X, y)
    far = PNCRegressor(**options).fit(da.from_array(X, chunks=100), da.from_array(y, chunks=100))
    np.testing.assert_array_equal(far.predict_interval(X[:9])[1], near.predict_interval(X[:9])[1])


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_killed_loses_no_row(cluster, data, whole, tmp_path):
    def killing(X, block_info=None):
        if not block_info or block_info[0]["chunk-location"][0] != 4:
            return X
        times = len(list(tmp_path.iterdir()))
        (tmp_path / str(times)).touch()
        if times == 2:  # once it has been looked at twice
            os.kill(os.getpid(), signal.SIGKILL)
        return X

    X, y = as_arrays(*data)
    X = X.rechunk({1: -1}).map_blocks(killing, dtype=X.dtype, meta=np.empty((0, 3)))
    model = PNCRegressor(**OPTIONS).fit(X, y)
    assert len(list(tmp_path.iterdir())) == 4
    assert_same(model, whole)
