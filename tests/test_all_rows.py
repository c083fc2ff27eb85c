"""The network on all rows by iterations: that of `solver="exact"`, inside an interval not narrower than its posterior."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from unseed import MLP, AllRows, Landmarks, PNCRegressor
from unseed._solvers.kernel_rows import HeldRows
from unseed.errors import InvalidInputError

RELU = MLP(depth=1, activation="relu", bias_scale=1.0, scale_inputs=True)
ERF = MLP(depth=1, activation="erf", bias_scale=1.0, scale_inputs=True)
INTERVALS = "truth", "sectioning", "batching", "cheap_bootstrap", "half_sampling", "infinitesimal_jackknife"


def truth(X):
    return np.sin(3 * X[:, 0]) + X[:, 1] * np.abs(X[:, 2])


def rows(n, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, truth(X) + noise * rng.standard_normal(n)


def regressor(solver, **options):
    return PNCRegressor(**{"network": RELU, "regularization": 1e-4, "random_state": 0, "solver": solver} | options)


@pytest.fixture(scope="module")
def three_thousand():
    """Landmarks few enough that they miss much; the exact model of the same network and λ."""
    X, y = rows(3000)
    tight = regressor(AllRows(tolerance=1e-10, landmarks=200)).fit(X, y)
    loose = regressor(AllRows(landmarks=200)).fit(X, y)
    return tight, loose, regressor("exact").fit(X, y), rows(300, seed=1)[0]


def posterior(prediction):
    return prediction.components.parts["posterior"] + prediction.components.parts.get("landmarks", 0.0)


def test_the_centre_is_the_exact_one_where_landmarks_alone_are_far_off(three_thousand):
    tight, loose, exact, points = three_thousand
    few = regressor(Landmarks(count=200)).fit(*rows(3000)).predict(points)
    assert np.abs(few - exact.predict(points)).max() > 0.02
    np.testing.assert_allclose(tight.predict(points), exact.predict(points), rtol=0, atol=1e-6)
    np.testing.assert_allclose(loose.predict(points), exact.predict(points), rtol=0, atol=5e-3)
    np.testing.assert_allclose(tight.get_prediction(points).mean, exact.predict(points), rtol=0, atol=1e-6)


def test_iterations_are_few_and_counted(three_thousand):
    tight, loose, _, points = three_thousand
    assert 2 <= loose.convergence_.iterations <= 10 < tight.convergence_.iterations
    assert tight.convergence_.converged
    assert tight.convergence_.relative_residual <= 2e-10
    assert loose.solver_ == AllRows(landmarks=200)
    assert f"in {loose.convergence_.iterations} iterations" in " ".join(f.sentence for f in loose.diagnose(points).findings)


@pytest.mark.parametrize(("network", "count"), [(RELU, 100), (RELU, 500), (ERF, 150), (ERF, 500)])
def test_the_posterior_is_never_narrower_than_the_exact_one_and_not_much_wider(network, count):
    X, y = rows(3000, seed=count)
    points = np.random.default_rng(9).uniform(-1.2, 1.2, (400, 3))  # some beyond the rows
    few = regressor(AllRows(landmarks=count), network=network).fit(X, y)
    exact = regressor("exact", network=network).fit(X, y)
    ratio = posterior(few.get_prediction(points)) / posterior(exact.get_prediction(points))
    assert ratio.min() >= 1
    assert ratio.mean() <= 2.5
    contrasts = [posterior(model.get_contrast(points[:200], points[200:])) for model in (few, exact)]
    assert (contrasts[0] / contrasts[1]).min() >= 0.9


def test_leave_one_out_errors_are_nearly_the_exact_ones(three_thousand):
    tight, _, exact, _ = three_thousand
    mine, theirs = tight._replicates, exact._replicates
    _, here, there = np.intersect1d(mine.checked.indices, theirs.checked.indices, return_indices=True)
    assert len(here) > 800
    difference = mine.left_out.errors[here] - theirs.left_out.errors[there]
    assert np.sqrt(np.mean(difference**2)) < 0.05 * np.sqrt(np.mean(theirs.left_out.errors**2))
    at_landmarks = regressor(Landmarks(count=200)).fit(*rows(3000))._replicates.left_out.errors[mine.checked.indices[here]]
    assert np.sqrt(np.mean(difference**2)) < 0.3 * np.sqrt(np.mean((at_landmarks - theirs.left_out.errors[there]) ** 2))
    assert (mine.left_out.variance[here] / theirs.left_out.variance[there]).mean() >= 1
    assert mine.noise_variance == pytest.approx(theirs.noise_variance, rel=0.03)


@pytest.mark.parametrize("interval", INTERVALS)
def test_every_interval_has_the_landmarks_width_around_the_new_centre(interval):
    X, y = rows(600)
    y = np.stack([y, np.abs(X[:, 1])], axis=1)
    points, _ = rows(40, seed=1)
    moved, few = (regressor(solver, interval=interval).fit(X, y) for solver in (AllRows(1e-8, 60), Landmarks(60)))
    mine, theirs = (model._replicates.at(points).predict(points) for model in (moved, few))
    shift = mine - theirs
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), rtol=0, atol=1e-9)
    assert np.abs(shift).max() > 1e-3
    if interval != "truth":
        errors = [model.get_prediction(points).standard_error for model in (moved, few)]
        np.testing.assert_allclose(*errors, rtol=1e-9)
    for kind in ("confidence", "prediction"):
        assert moved.predict_interval(points, kind=kind)[1].shape == (40, 2, 2, 1)


def test_a_saved_model_says_the_same(three_thousand, tmp_path):
    _, model, _, points = three_thousand
    model.save(tmp_path / "model")
    again = PNCRegressor.load(tmp_path / "model")
    assert again.solver_ == model.solver_
    assert again.convergence_ == model.convergence_
    for kind in ("confidence", "prediction"):
        for mine, theirs in zip(
            again.predict_interval(points, kind=kind), model.predict_interval(points, kind=kind), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
    assert str(again.diagnose(points)) == str(model.diagnose(points))


def test_a_matrix_in_memory_multiplies_as_one_that_is_computed_anew():
    X, y = rows(1300)  # three strips, the last one short
    kept = regressor(AllRows(landmarks=300)).fit(X, y)._replicates.trained
    anew, held = kept.rows, HeldRows.of(kept.rows)
    columns = torch.from_numpy(np.random.default_rng(0).standard_normal((1300, 3)))
    scale = float(kept.spaces(kept.rows.X)[1].max())
    for mine, exact in (
        (held.product(columns), anew.product(columns)),
        (held.smooth(kept.landmarks.factor, columns), anew.smooth(kept.landmarks.factor, columns)),
    ):
        assert float((mine - exact).abs().max()) < 1e-7 * scale * len(X) ** 0.5
    assert len(held.strips) == 3
    assert held.strips[0].dtype == torch.float32


def test_without_memory_for_a_matrix_the_answers_are_the_same(monkeypatch):
    X, y = rows(800)
    with_matrix = regressor("all_rows").fit(X, y).predict_interval(X[:50])
    monkeypatch.setattr("unseed._solvers.kernel_rows.available_bytes", lambda device: 10_000)
    assert HeldRows.of(regressor("all_rows").fit(X, y)._replicates.trained.rows) is None
    for mine, theirs in zip(regressor("all_rows").fit(X, y).predict_interval(X[:50]), with_matrix, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-4)


def test_auto_goes_from_one_solver_to_the_next_without_a_jump(monkeypatch):
    X, y = rows(1500)
    points, _ = rows(200, seed=1)
    answers = []
    for most, on_all in ((2000, 2000), (1000, 2000), (1000, 1000)):
        monkeypatch.setattr("unseed.engines._solver._EXACT_ROWS", most)
        monkeypatch.setattr("unseed.engines._solver._ALL_ROWS", on_all)
        model = regressor("auto").fit(X, y)
        answers.append((model.solver_, model.get_prediction(points)))
    assert [type(solver).__name__ for solver, _ in answers] == ["Exact", "AllRows", "Landmarks"]
    (_, exact), (_, iterated), (_, summed) = answers
    half_width = 1.96 * exact.standard_error
    assert (np.abs(iterated.mean - exact.mean) / half_width).max() < 0.05
    assert (np.abs(summed.mean - exact.mean) / half_width).max() < 0.5
    widths = [np.mean(one.standard_error) for one in (exact, iterated, summed)]
    assert 0.95 < widths[1] / widths[0] < 1.05
    # A rough kernel expects more of a smooth function than it has; landmarks see how much, and count no more than that.
    assert 0.65 < widths[2] / widths[0] < 1.05


def test_iterations_that_nobody_asked_for_and_that_do_not_end_give_way_to_sums(monkeypatch):
    X, y = rows(1500)
    monkeypatch.setattr("unseed.engines._solver._EXACT_ROWS", 1000)
    monkeypatch.setattr("unseed.engines._iterated._MAX_ITERATIONS", 0)
    model = regressor("auto").fit(X, y)
    np.testing.assert_array_equal(model.predict(X[:20]), regressor("landmarks").fit(X, y).predict(X[:20]))
    assert type(model.solver_) is Landmarks


def test_the_truth_is_covered():
    X, y = rows(2000)
    points, _ = rows(400, seed=1)
    low, high = regressor("all_rows", regularization="auto").fit(X, y).get_prediction(points).conf_int(0.95).T
    assert np.mean((low <= truth(points)) & (truth(points) <= high)) >= 0.93


def test_a_residual_that_does_not_fall_is_said_in_a_sentence():
    X, y = rows(300)
    with pytest.warns(ConvergenceWarning, match=r"stopped after \d+ iterations .* should have reached tolerance=1e-30"):
        model = regressor(AllRows(tolerance=1e-30, landmarks=20)).fit(X, y)
    assert not model.convergence_.converged
    assert "not found as exactly" in " ".join(finding.sentence for finding in model.diagnose().findings)


def test_what_cannot_be_is_said():
    X, y = rows(100)
    for take in (lambda model: model.partial_fit(X, y), lambda model: model.fit_stream([(X, y)])):
        for solver in ("all_rows", AllRows()):
            with pytest.raises(InvalidInputError, match=r"passes over all rows many times, .* use fit, or solver='landmarks'"):
                take(regressor(solver))
    for options, words in (({"tolerance": 0}, "tolerance=0"), ({"landmarks": 1}, "landmarks=1")):
        with pytest.raises(InvalidInputError, match=words):
            AllRows(**options)
    with pytest.raises(InvalidInputError, match="at least 64"):
        regressor("all_rows").fit(X[:10], y[:10])
    with pytest.raises(InvalidInputError, match="is for engine='kernel'"):
        regressor("all_rows", engine="linearized").fit(X, y)
    with pytest.raises(InvalidInputError, match="compress"):
        regressor("all_rows").fit(X, y).compress(anchors=10)
