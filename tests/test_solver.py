"""Rows that are summed up in a space of landmarks: the same figures as from all rows at once, however they come."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unseed import MLP, Exact, HalfSampling, Landmarks, PNCRegressor
from unseed._resampling import HashedPlan, Plan
from unseed._solvers import Sums, evidence
from unseed._solvers.evidence import Explained, likeliest_amplitudes, scaled
from unseed._solvers.landmarks import Space
from unseed.engines import KernelEngine, NewPoints, RowSums, Task, _landmarks, spaces_among
from unseed.engines._landmarks import KeptRows
from unseed.errors import InvalidInputError
from unseed.intervals import IntervalMethod
from unseed.losses import Loss

RELU = MLP(depth=1, activation="relu", bias_scale=1.0, scale_inputs=True)
ERF = MLP(depth=1, activation="erf", bias_scale=1.0, scale_inputs=True)
INTERVALS = "truth", "sectioning", "batching", "cheap_bootstrap", "half_sampling", "infinitesimal_jackknife"


def truth(X):
    return np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def rows(n, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, truth(X) + noise * rng.standard_normal(n)


@pytest.fixture(scope="module")
def small():
    """Few rows, all of them landmarks, two outputs; the same replicates from sums and from all rows at once."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(300, 3, generator=generator, dtype=torch.float64)
    y = torch.stack([torch.sin(X[:, 0]), X[:, 1].abs()], 1) + 0.3 * torch.randn(300, 2, generator=generator).double()
    plan = HashedPlan("parts", 4, seed=1)
    sums = RowSums.none(spaces_among(X, [RELU], 1000), plan, 2)
    for part in (slice(0, 7), slice(7, 200), slice(200, 300)):
        sums = sums.plus(X[part], y[part])
    summed = sums.fitted([5.0])
    ridge = 1 / (float(summed.spaces.amplitudes[0]) * 300)
    dense = Plan(np.rint(plan.at(np.arange(300))).astype(np.int64), (0,))
    whole = KernelEngine().fit(Task(X, torch.stack([y, torch.zeros_like(y)], 1), RELU, ridge), dense)
    return (
        replace(summed, missed=torch.ones(2, dtype=torch.float64)),
        whole,
        torch.randn(40, 2, 3, generator=generator).double(),
    )


@pytest.mark.parametrize(
    "ask",
    [
        lambda trained, at: trained.predict(NewPoints(at[:, 0])),
        lambda trained, at: trained.predict(NewPoints(at[:, 0], is_shared=True), [0, 2]),
        lambda trained, at: trained.noise_variance(),
        lambda trained, at: trained.posterior_variance(NewPoints(at[:, 0])),
        lambda trained, at: trained.posterior_variance(NewPoints(at[:, 0]), NewPoints(at[:, 1])),
        lambda trained, at: trained.posterior_covariance(NewPoints(at[:, 0])),
        lambda trained, at: trained.leave_out(torch.arange(0, 300, 7)).errors,
        lambda trained, at: trained.leave_out(torch.arange(0, 300, 7)).variance,
        lambda trained, at: trained.influence(NewPoints(at[:, 0])),
    ],
    ids=["predict", "shared", "noise", "posterior", "contrast", "covariance", "left out", "variance", "influence"],
)
def test_where_every_row_is_a_landmark_sums_say_what_all_rows_say(small, ask):
    summed, whole, points = small
    expected = ask(whole, points)
    torch.testing.assert_close(ask(summed, points), expected, rtol=1e-8, atol=1e-10 * float(expected.abs().max()))


def test_variances_in_several_spaces_are_the_diagonals_of_their_covariances():
    X, y = (torch.from_numpy(values) for values in rows(300))
    spaces = spaces_among(X, [RELU, ERF], 25)
    summed = RowSums.none(spaces, HashedPlan("parts", 3), 2).plus(X, torch.stack([y, X[:, 0]], 1)).fitted([20.0, 3.0], 20.0)
    trained = replace(summed, missed=torch.tensor([0.3, 0.7], dtype=torch.float64))
    at = torch.from_numpy(rows(14, seed=1)[0])
    joint = trained.posterior_covariance(NewPoints(at))
    variance = joint.diagonal(dim1=1, dim2=2).T
    torch.testing.assert_close(trained.posterior_variance(NewPoints(at)), variance, rtol=1e-9, atol=1e-12)
    between = variance[:7] + variance[7:] - 2 * joint[:, :7, 7:].diagonal(dim1=1, dim2=2).T
    contrast = trained.posterior_variance(NewPoints(at[:7]), NewPoints(at[7:]))
    torch.testing.assert_close(contrast, between, rtol=1e-9, atol=1e-12)
    shared, alone = (trained.predict(NewPoints(at, is_shared=is_shared)) for is_shared in (True, False))
    torch.testing.assert_close(shared, alone, rtol=1e-9, atol=1e-12)


def test_rows_that_are_not_kept_take_nothing_from_the_influence_of_those_that_are(small):
    summed, _, points = small
    some = torch.tensor([4, 90, 91, 250])
    few = replace(summed, kept=KeptRows(some, summed.kept.X[some], summed.kept.labels[some]))
    at = NewPoints(points[:, 0])
    torch.testing.assert_close(few.influence(at), summed.influence(at)[some], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(few.leave_out(some[1:]).errors, summed.leave_out(some[1:]).errors, rtol=1e-10, atol=1e-10)


def test_the_rows_that_are_kept_are_a_random_sample_however_they_come(monkeypatch):
    monkeypatch.setattr(_landmarks, "KEPT_ROWS", 400)
    X = torch.arange(4000, dtype=torch.float64)[:, None]
    kept = []
    for cuts in ([4000], [1, 2, 5, 1000, 3999, 4000], [*range(37, 4000, 37), 4000]):
        own = KeptRows(torch.zeros(0, dtype=torch.int64), X[:0], X[:0])
        for start, stop in zip([0, *cuts], cuts, strict=False):
            own = own.plus(X[start:stop], -X[start:stop], start)
        kept.append(own.positions.tolist())
        assert own.X[:, 0].tolist() == kept[0] == (-own.labels[:, 0]).tolist()
    assert kept[0] == kept[1] == kept[2] == sorted(set(kept[0]))
    # counts in quarters of the rows: 100 each, with a standard deviation of √(400 · ¼ · ¾ · 0.9) = 8.2; four of those
    assert np.abs(np.histogram(kept[0], 4, (0, 4000))[0] - 100).max() < 33


def test_what_landmarks_miss_counts_as_far_as_the_second_half_of_them_has_found_any_of_it():
    X, y = (torch.from_numpy(values) for values in rows(400, noise=0.1))
    labels = torch.stack([y, 1e3 * y, X.sum(1)], dim=1)
    spaces = spaces_among(X, [RELU, ERF], 15)
    halves = [Space(space.network, space.landmarks[:8], space.root[:8, :8]) for space in spaces.spaces]
    plan, at = HashedPlan("all"), NewPoints(X)
    whole, half = (
        RowSums.none(one, plan, 3).plus(X, labels).fitted([1.0, 0.5], 30.0) for one in (spaces, replace(spaces, spaces=halves))
    )
    assert whole.spaces.amplitudes.tolist() == [30.0, 15.0]
    found = (whole.predict(at) - half.predict(at))[0, :, 0].square().mean(0)
    one = torch.ones(3, dtype=torch.float64)
    left_out = [replace(trained, missed=one, noise=whole.noise).missed_variance(at).mean(0) for trained in (half, whole)]
    # 14 squares, whose mean is known to a share of √(2/14)
    torch.testing.assert_close(whole.missed, (1 + (2 / 14) ** 0.5) * found / (left_out[0] - left_out[1]), rtol=1e-8, atol=0)
    assert whole.missed[0] == pytest.approx(float(whole.missed[1]), rel=1e-9)  # whatever the unit of the labels
    assert 0.01 < float(whole.missed.min()) < float(whole.missed.max()) < 1


def test_the_evidence_is_that_of_the_labels_and_its_slopes_are_its_derivatives(monkeypatch):
    X, y = (torch.from_numpy(values) for values in rows(200))
    spaces = spaces_among(X, [RELU, ERF], 200)
    sums = Sums.of(spaces.bare(X), y[:, None], torch.ones(200, dtype=torch.float64))

    def explained(logarithms):
        amplitudes = torch.tensor(logarithms, dtype=torch.float64).exp()
        return Explained.of(scaled(sums, replace(spaces, amplitudes=amplitudes).scales))

    at = [1.0, -0.5]
    rho = np.exp(at)
    kernels = [space.kernel.ntk_gram(space.kernel.profile(X)) for space in spaces.spaces]
    matrix = sum(r * K for r, K in zip(rho, kernels, strict=True)) + torch.eye(200, dtype=torch.float64)
    noise = float(y @ torch.linalg.solve(matrix, y)) / 200
    found = explained(at)
    assert float(found.noise) == pytest.approx(noise, rel=1e-9)
    assert found.log_evidence == pytest.approx(-100 * np.log(noise) - float(torch.logdet(matrix)) / 2, rel=1e-9)
    step = 1e-5
    for place, slope in enumerate(found.slopes(spaces.sizes)):
        up, down = ([a + sign * step * (i == place) for i, a in enumerate(at)] for sign in (1, -1))
        assert slope == pytest.approx((explained(up).log_evidence - explained(down).log_evidence) / (2 * step), rel=1e-5)
    best = likeliest_amplitudes(sums, spaces, [1.0, 1.0]).log().tolist()
    assert all(explained([a + d for a in best]).log_evidence <= explained(best).log_evidence for d in (-0.3, 0.3))
    for few in (evidence._FEW_FEATURES, 100):  # all features at once, and half of the landmarks first
        monkeypatch.setattr(evidence, "_FEW_FEATURES", few)
        elsewhere = likeliest_amplitudes(sums, spaces, [30.0, 300.0]).log().tolist()
        assert explained(elsewhere).log_evidence == pytest.approx(explained(best).log_evidence, abs=0.1)


@pytest.mark.parametrize("interval", ["batching", "sectioning", "truth", "cheap_bootstrap", "half_sampling"])
def test_parts_and_resamples_are_those_of_the_random_state(interval):
    X, y = rows(300)
    options = {"network": RELU, "regularization": 1e-3, "interval": interval, "solver": Landmarks(count=20)}
    one, again, other = (PNCRegressor(random_state=seed, **options).fit(X, y)._replicates.plan for seed in (1, 1, 2))
    assert (one, one.law) == (again, other.law)
    assert (one.at(np.arange(300))[-1] != other.at(np.arange(300))[-1]).any()


def test_the_evidence_of_many_rows_is_climbed_to_the_top():
    """A million rows like these would make slopes of the evidence per row so small that a climb must not go by them."""
    X, y = (torch.from_numpy(values) for values in rows(400))
    spaces = spaces_among(X, [ERF, RELU], 100)
    few = Sums.of(spaces.bare(X), y[:, None], torch.ones(400, dtype=torch.float64))
    many = Sums(few.rows, 2500 * few.weight, 2500 * few.inner, 2500 * few.cross, 2500 * few.squares)
    found = likeliest_amplitudes(many, spaces, [1.0, 1.0])
    assert np.abs(Explained.of(scaled(many, replace(spaces, amplitudes=found).scales)).slopes(spaces.sizes)).max() < 1


@pytest.mark.parametrize("law", ["all", "parts", "halves", "bootstrap"])
def test_hashed_counts_have_the_law_of_drawn_ones(law):
    plan = HashedPlan(law, 0 if law == "all" else 4, seed=3)
    counts = plan.at(np.arange(40_000))
    assert (counts[0] == 1).all()
    mean, variance = {"parts": (0.25, 0.1875), "halves": (0.5, 0.25), "bootstrap": (1, 1)}.get(law, (1, 0))
    for own in counts[1:]:
        assert own.mean() == pytest.approx(mean, abs=4.5 * np.sqrt(variance / 40_000))  # five in a million
        assert own.var() == pytest.approx(variance, rel=0.05)
    another = HashedPlan(law, plan.replications, seed=4).at(np.arange(40_000))
    for own, other in zip(counts[1:], another[1:], strict=True):
        assert abs(np.corrcoef(own, other)[0, 1]) < 4.5 / np.sqrt(40_000)
    if law == "parts":
        assert (counts[1:].sum(0) == 1).all()
    elif law != "all":
        assert np.abs(np.corrcoef(counts[1:]) - np.eye(4)).max() < 4.5 / np.sqrt(40_000)


@pytest.mark.parametrize("interval", INTERVALS)
def test_every_interval_is_nearly_that_of_all_rows_at_once(interval):
    X, y = rows(2000)
    points, _ = rows(200, seed=1)
    options = {"network": RELU, "regularization": 1e-3, "interval": interval, "random_state": 0}
    exact = PNCRegressor(solver="exact", **options).fit(X, y)
    summed = PNCRegressor(solver=Landmarks(count=500), **options).fit(X, y)
    (few, few_error), (all_, all_error) = (model.predict(points, return_std=True) for model in (summed, exact))
    assert np.sqrt(np.mean((few - all_) ** 2)) < 0.35 * np.sqrt(np.mean((all_ - truth(points)) ** 2))
    assert few_error.mean() == pytest.approx(all_error.mean(), rel=0.5)  # t quantiles apart, resamples differ
    assert summed.solver_ == Landmarks(count=500)
    assert exact.solver_ == Exact()


@pytest.fixture(scope="module")
def many():
    X, y = rows(12_000)
    return X, y, PNCRegressor(network=RELU, solver=Landmarks(count=150), random_state=0).fit(X, y)


def test_rows_in_pieces_come_to_the_same_model(many):
    X, y, whole = many
    pieces = PNCRegressor(network=RELU, solver=Landmarks(count=150), random_state=0)
    for start, stop in ((0, 3), (3, 9_990), (9_990, 10_050), (10_050, 12_000)):
        pieces.partial_fit(X[start:stop], y[start:stop])
    assert pieces.n_rows_ == 12_000
    assert pieces.solver_ == whole.solver_ == Landmarks(count=150)
    points, _ = rows(100, seed=1)
    for kind in ("confidence", "prediction"):
        for mine, theirs in zip(
            pieces.predict_interval(points, kind=kind), whole.predict_interval(points, kind=kind), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)
    assert pieces.regularization_ == pytest.approx(whole.regularization_, rel=1e-7)


def test_the_truth_is_covered_and_parts_are_named(many):
    _, _, model = many
    points, _ = rows(400, seed=1)
    prediction = model.get_prediction(points)
    low, high = prediction.conf_int(0.95).T
    assert np.mean((low <= truth(points)) & (truth(points) <= high)) >= 0.93
    assert set(prediction.components.parts) == {"sampling", "posterior", "landmarks", "misfit", "rival"}
    np.testing.assert_allclose(sum(prediction.components.parts.values()), prediction.standard_error**2, rtol=1e-9)
    assert np.isnan(prediction.components.procedural).all()


def test_a_saved_model_says_the_same(many, tmp_path):
    _, _, model = many
    points, _ = rows(100, seed=1)
    model.save(tmp_path / "model")
    again = PNCRegressor.load(tmp_path / "model")
    assert again.solver_ == model.solver_
    for kind in ("confidence", "prediction"):
        for mine, theirs in zip(
            again.predict_interval(points, kind=kind), model.predict_interval(points, kind=kind), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
    assert str(again.diagnose(points)) == str(model.diagnose(points))
    few = PNCRegressor(network=RELU, solver=Landmarks(count=50), random_state=0).fit(points, truth(points))
    few.save(tmp_path / "few")
    with pytest.raises(InvalidInputError, match="has its rows no longer"):
        PNCRegressor.load(tmp_path / "few").partial_fit(points, truth(points))


def test_a_model_of_few_rows_grows(tmp_path):
    X, y = rows(300)
    grown = PNCRegressor(network=RELU, random_state=0).fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    whole = PNCRegressor(network=RELU, random_state=0).fit(X, y)
    assert grown.solver_ == Exact()
    np.testing.assert_allclose(grown.predict_interval(X[:9])[1], whole.predict_interval(X[:9])[1], rtol=1e-9)


def test_a_refused_piece_leaves_the_model_as_it_was(many):
    X, y, _ = many
    model = PNCRegressor(network=RELU, random_state=0).partial_fit(X[:200], y[:200])
    before = model.predict(X[:5])
    broken = X[200:300].copy()
    broken[7, 1] = np.nan
    for bad, labels, words in (
        (broken, y[200:300], "NaN"),
        (X[200:300, :2], y[200:300], "2 features"),
        (X[200:300], np.stack([y[200:300]] * 2, 1), "2 columns"),
        (X[:0], y[:0], "X has no rows"),
        (X[200:300], y[200:299], "inconsistent"),
    ):
        with pytest.raises(ValueError, match=words):
            model.partial_fit(bad, labels)
        assert model.n_rows_ == 200
        np.testing.assert_array_equal(model.predict(X[:5]), before)


def test_rows_that_are_looked_at_again_are_those_that_were_given():
    X, y = rows(500)
    X, y = 30 * X - 7, 1e4 * y + 5e5
    options = {"network": RELU, "solver": Landmarks(count=50), "initial_mean": lambda X: 1e3 * X[:, 0], "random_state": 0}
    model = PNCRegressor(**options).fit(X, y)
    checked = model._replicates.checked
    np.testing.assert_allclose(checked.X, X[checked.indices], rtol=1e-12)
    np.testing.assert_allclose(checked.y[:, 0], y[checked.indices], rtol=1e-12)
    found = model.leave_one_out()
    assert 1 - found.r_squared.item() == pytest.approx(found.rmse.item() ** 2 / y.var(), rel=0.1)


def test_units_come_back_in_every_part():
    X, y = rows(500)
    points, _ = rows(20, seed=1)
    options = {"network": RELU, "solver": Landmarks(count=40), "random_state": 0}
    one = PNCRegressor(**options).fit(X, y).get_prediction(points)
    other = PNCRegressor(**options).fit(7 * X + 2, 1e3 * y - 5e4).get_prediction(7 * points + 2)
    for name, part in one.components.parts.items():
        np.testing.assert_allclose(other.components.parts[name], 1e6 * part, rtol=1e-5, err_msg=name)
    assert (one.components.parts["landmarks"] > 0).all()
    np.testing.assert_allclose(other.pred_int(), 1e3 * one.pred_int() - 5e4, rtol=1e-6)


class HalfTheSquare(Loss):
    name = "half the square"

    def value(self, f, y):
        return (f - y) ** 2 / 2

    def gradient(self, f, y):
        return f - y

    def curvature(self, f, y):
        return torch.ones_like(f)


@pytest.mark.parametrize("loss", ["squared", HalfTheSquare()])
@pytest.mark.parametrize("regularization", ["auto", 1e-3])
def test_the_regularization_that_a_model_has_is_that_of_its_fit(regularization, loss):
    X, y = rows(300)
    points, _ = rows(20, seed=1)
    options = {"network": RELU, "interval": "sectioning", "random_state": 0, "loss": loss}
    summed = PNCRegressor(solver=Landmarks(count=300), regularization=regularization, **options).fit(X, y)
    assert regularization in ("auto", summed.regularization_)
    exact = PNCRegressor(solver="exact", regularization=summed.regularization_, **options).fit(X, y)
    np.testing.assert_allclose(summed.predict(points), exact.predict(points), rtol=0, atol=1e-6)


def test_too_few_landmarks_are_named():
    X, y = rows(800)

    def finding(count):
        model = PNCRegressor(network=RELU, solver=Landmarks(count=count), random_state=0).fit(X, y)
        return next(one for one in model.diagnose().findings if one.name.startswith("variance that the landmarks leave out"))

    few, many = finding(10), finding(700)
    assert not few.holds
    assert many.holds
    assert few.value > 10 * many.value


def test_what_the_solver_took_is_said_at_once():
    X, y = rows(10_500)
    for fitted in (PNCRegressor.fit, PNCRegressor.partial_fit):
        model = fitted(PNCRegressor(network=ERF, solver=Landmarks(count=300)), X[:, :1], y)
        assert model.solver_.count < 100  # a smooth kernel in one dimension has no more
        assert model.solver_ == Landmarks(len(model._replicates.trained.spaces.spaces[0]))


def test_sorted_rows_are_no_trap(many):
    X, y, whole = many
    order = np.argsort(X[:, 0])
    model = PNCRegressor(network=RELU, solver=Landmarks(count=150), random_state=0).fit(X[order], y[order])
    points, _ = rows(300, seed=1)
    mine, others = (np.mean((one.predict(points) - truth(points)) ** 2) for one in (model, whole))
    assert mine < 2 * others  # on the first rows alone it is thirty times as much


def test_a_stream_says_which_piece_is_at_fault(many):
    X, y, whole = many
    pieces = [(X[start : start + 1000], y[start : start + 1000]) for start in range(0, 12_000, 1000)]
    model = PNCRegressor(network=RELU, solver=Landmarks(count=150), random_state=0).fit_stream(iter(pieces))
    points, _ = rows(20, seed=1)
    np.testing.assert_allclose(model.predict(points), whole.predict(points), rtol=0, atol=1e-9)
    for bad, words in (((X[:5, :2], y[:5]), "piece 4: X has 2 features"), (X[0], "piece 4: a piece should be a pair")):
        with pytest.raises(InvalidInputError, match=words):
            PNCRegressor(network=RELU).fit_stream([*pieces[:3], bad])
    with pytest.raises(InvalidInputError, match="pieces is empty"):
        PNCRegressor().fit_stream([])


@pytest.mark.parametrize(
    ("options", "n_rows", "words"),
    [
        ({"solver": "nystrom"}, 100, "solver='nystrom' is not known"),
        ({"solver": "landmarks", "engine": "linearized", "network": RELU}, 100, "is for engine='kernel'"),
        ({"solver": "landmarks", "network": RELU}, 10, "at least 64"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_done(options, n_rows, words):
    with pytest.raises(InvalidInputError, match=words):
        PNCRegressor(**options).fit(*rows(n_rows))
    with pytest.raises(InvalidInputError, match="count"):
        Landmarks(count=1)


def test_an_interval_of_ones_own_says_how_rows_that_are_summed_up_are_resampled():
    class Halves(IntervalMethod):
        def plan(self, n_rows, streams):
            return HalfSampling().plan(n_rows, streams)

        def estimate(self, replicates, X):
            return HalfSampling().estimate(replicates, X)

    class Hashed(Halves):
        def hashed_plan(self, streams):
            return HashedPlan("halves", 4, streams.seed)

    X, y = rows(200)
    options = {"network": RELU, "solver": "landmarks", "random_state": 0}
    with pytest.raises(InvalidInputError, match="does not say how rows that are summed up are resampled"):
        PNCRegressor(interval=Halves(), **options).fit(X, y)
    own, ours = (PNCRegressor(interval=method, **options).fit(X, y) for method in (Hashed(), HalfSampling()))
    np.testing.assert_array_equal(own.predict_interval(X[:5])[1], ours.predict_interval(X[:5])[1])


@pytest.mark.parametrize("function", [lambda X: np.full(len(X), 2.0), lambda X: X[:, 0]], ids=["constant", "linear"])
def test_rows_without_noise_are_explained(function):
    X, _ = rows(100)
    model = PNCRegressor(network=RELU, solver="landmarks", random_state=0).fit(X, function(X))
    mean, error = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, function(X), atol=1e-4)
    prediction = model.predict_interval(X, kind="prediction")[1]
    assert np.isfinite(error).all()
    assert (prediction[:, 0] <= prediction[:, 1]).all()  # not NaN


def test_a_time_budget_buys_landmarks(monkeypatch):
    X, y = rows(20_000)
    options = {"network": RELU, "regularization": 1e-3, "random_state": 0}
    monkeypatch.setattr("unseed.engines._row_sums._seconds_of_a_product", lambda device: 1e-10)
    counts = [PNCRegressor(solver=Landmarks(time_budget=t), **options).fit(X, y).solver_ for t in (1.0, 4.0)]
    # 0.7 t seconds at 1e-10 a product: √(0.7 t · 1e10 / 20,000) landmarks, less what the choice took, which is nothing here
    assert [solver.count for solver in counts] == pytest.approx([591, 1183], rel=0.05)
    assert all(solver.time_budget is None for solver in counts)


def test_a_trial_says_how_long_adding_up_takes():
    from unseed.engines._row_sums import _seconds_of_a_product

    assert 1e-13 < _seconds_of_a_product(torch.device("cpu")) < 1e-7


@pytest.mark.parametrize(
    ("options", "words"), [({"time_budget": 0}, "time_budget=0"), ({"count": 5, "time_budget": 3}, "give one of them")]
)
def test_a_time_budget_that_cannot_be_is_refused(options, words):
    with pytest.raises(InvalidInputError, match=words):
        Landmarks(**options)
