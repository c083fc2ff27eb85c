"""Models of the errors: structure, quadratics and noise that differs over x, each against what was put in."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unseed._residuals import MAX_FEATURES, TERMS, Curves, Misfit, NoiseModel, ridge_fits, slope, steepest_fits


def rows(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng


class TestCurves:
    def test_terms_are_cosines_of_ranks(self):
        X = np.array([[3.0], [1.0], [2.0], [10.0]])
        ranks = (np.array([2, 0, 1, 3]) + 0.5) / 4
        terms = np.cos(np.pi * np.arange(1, TERMS + 1) * ranks[:, None])
        assert_allclose(Curves.along(X)(X), terms - terms.mean(axis=0), atol=1e-14)

    def test_beyond_the_rows_a_curve_stays_where_it_ended(self):
        X, _ = rows(d=1)
        curves = Curves.along(X)
        assert_allclose(curves(np.array([[1e3]])), curves(np.array([[1e9]])))

    def test_many_features_become_their_leading_components(self):
        X, _ = rows(n=100, d=MAX_FEATURES + 30)
        assert Curves.along(X)(X).shape == (100, MAX_FEATURES * TERMS)

    def test_left_out_predictions_are_refits(self):
        X, rng = rows(n=40, d=2)
        design, targets = Curves.along(X)(X), rng.normal(size=40)
        power = np.linalg.svd(design, compute_uv=False) ** 2
        power = power[np.sqrt(power) > 1e-8 * np.sqrt(power.max())]
        for (_, left_out), shrinkage in zip(ridge_fits(design, targets), np.logspace(-3, 2, 11), strict=True):
            others = np.arange(40) != 7
            ridge = shrinkage * power.mean() * np.eye(design.shape[1])
            middle = design[others].mean(axis=0)
            columns = design[others] - middle  # a mean is fitted as well, and not shrunk
            refit = np.linalg.solve(columns.T @ columns + ridge, columns.T @ targets[others])
            assert_allclose(left_out[7], targets[others].mean() + (design[7] - middle) @ refit, rtol=1e-10)

    def test_constant_features_have_no_curves(self):
        assert list(ridge_fits(Curves.along(np.ones((20, 2)))(np.ones((20, 2))), np.arange(20.0))) == []


class TestMisfit:
    @pytest.mark.parametrize(("n", "d"), [(30, 3), (60, 10), (60, 100), (300, 4), (300, 30)])
    def test_noise_is_not_structure(self, n, d):
        # Labels of pure noise, of which nothing is predicted but their mean: curves along d features, and along the direction
        # that these very labels make the steepest, are found in one data set of 20. 100 sets: 11 or more have a chance of 0.01.
        found = []
        for seed in range(100):
            X, rng = rows(n, d, seed=seed)
            labels = rng.normal(size=(n, 1))
            found.append(Misfit.find(X, labels, labels - labels.mean()).mean_square[0])
        assert np.sum(np.array(found) > 0) <= 10
        assert np.mean(found) < 0.02

    def test_the_steepest_direction_is_crossed_as_by_hand(self):
        X, rng = rows(n=50, d=3)
        labels, errors = rng.normal(size=(2, 50))
        curves = Curves.along(X, slope(X, labels))
        fold = np.random.default_rng(0).permutation(50) % 5
        unseen = fold == fold[7]
        centred = X[~unseen] - X[~unseen].mean(axis=0)
        scale = X[~unseen].std(axis=0)
        z = centred / scale
        steepest = np.linalg.solve(z.T @ z + 1e-3 * len(z) * np.eye(3), z.T @ labels[~unseen]) / scale
        line, at = X[~unseen] @ steepest, X[7] @ steepest
        terms = np.arange(1, TERMS + 1)

        def design(values):
            ranks = ((line < values[:, None]).sum(axis=1) + (line <= values[:, None]).sum(axis=1)) / 2 / len(line)
            return np.cos(np.pi * ranks[:, None] * terms)

        mean = design(line).mean(axis=0)
        columns = design(line) - mean
        power = np.linalg.svd(columns, compute_uv=False) ** 2
        fits = list(steepest_fits(curves, X, labels, errors))
        assert len(fits) == 11
        for (_, crossed), shrinkage in zip(fits, np.logspace(-3, 2, 11), strict=True):
            refit = np.linalg.solve(columns.T @ columns + shrinkage * power.mean() * np.eye(TERMS), columns.T @ errors[~unseen])
            expected = np.delete(errors, 7).mean() + ((design(np.array([at])) - mean) @ refit)[0]
            assert_allclose(crossed[7], expected, rtol=1e-9)

    def test_a_curve_along_a_feature_is_found_in_size(self):
        X, rng = rows()
        structure = np.sin(3 * X[:, 2])
        misfit = Misfit.find(X, rng.normal(size=(300, 1)), (structure + 0.5 * rng.normal(size=300))[:, None])
        assert 0.6 * structure.var() < misfit.mean_square[0] < 1.3 * structure.var()
        assert (misfit(X)[:, 0] >= misfit.mean_square[0]).all()

    def test_a_curve_along_the_steepest_direction_is_found(self):
        X, rng = rows(d=12)
        index = X.sum(axis=1) / np.sqrt(12)
        structure = np.tanh(2 * index) - 0.8 * index
        labels, errors = (values[:, None] + 0.1 * rng.normal(size=(300, 1)) for values in (index, structure))
        misfit = Misfit.find(X, labels, errors)
        assert misfit.mean_square[0] > 0.5 * structure.var()

    def test_the_quadratic_knows_the_middle(self):
        # Every feature bends too little to be seen alone; together they move the middle by 0.4, against noise of 1.
        X, rng = rows(n=4000, d=16)
        errors = 0.025 * (16 - (X**2).sum(axis=1)) + rng.normal(size=4000)
        misfit = Misfit.find(X, rng.normal(size=(4000, 1)), errors[:, None])
        assert 0.2 < np.sqrt(misfit(np.zeros((1, 16)))[0, 0]) < 0.6

    def test_few_rows_are_fitted_by_nothing(self):
        X, rng = rows(n=10)
        misfit = Misfit.find(X, rng.normal(size=(10, 2)), rng.normal(size=(10, 2)))
        assert_allclose(misfit(X), np.zeros((10, 2)))
        assert_allclose(misfit.mean_square, 0)

    def test_constant_features_do_no_harm_and_pickles_are_whole(self):
        X, rng = rows()
        X[:, 1] = 7.0
        misfit = Misfit.find(X, rng.normal(size=(300, 1)), np.sin(3 * X[:, :1]))
        assert np.isfinite(misfit(X)).all()
        assert_allclose(pickle.loads(pickle.dumps(misfit))(X), misfit(X))


class TestNoise:
    def model(self, kind="auto", slope=1.0, n=600):
        X, rng = rows(n=n, d=3)
        deviation = np.exp(slope * np.tanh(X[:, 0]))
        errors = (deviation * rng.normal(size=n))[:, None]
        return X, deviation**2, NoiseModel.fit(X, errors, np.zeros((n, 1)), (errors**2).mean(axis=0), kind)

    def test_varying_noise_is_found(self):
        X, variance, noise = self.model()
        assert noise.shapes != (None,)
        assert np.corrcoef(np.log(noise(X)[:, 0]), np.log(variance))[0, 1] > 0.9
        assert_allclose(noise(X).mean(), noise.average, rtol=0.1)

    @pytest.mark.parametrize(("n", "d", "sets"), [(60, 10, 100), (300, 4, 100), (500, 100, 10)])
    def test_constant_noise_stays_constant(self, n, d, sets):
        # Two standard errors on left-out rows: one of twenty data sets may show varying noise by chance. Of 100 sets 11 or
        # more have a chance of 0.01, of 10 sets 3 or more.
        varies = []
        for seed in range(sets):
            X, rng = rows(n, d, seed=seed)
            errors = rng.normal(size=(n, 1))
            varies.append(NoiseModel.fit(X, errors, np.zeros((n, 1)), np.ones(1), "auto").shapes != (None,))
        assert np.sum(varies) <= (10 if sets == 100 else 2)

    def test_what_predictions_do_not_know_is_not_taken_for_noise_that_varies(self):
        # Errors that are large where the posterior says so, under noise that is the same everywhere: as above.
        varies = []
        for seed in range(20):
            X, rng = rows(seed=seed)
            variance = np.exp(3 * np.tanh(X[:, :1]))
            errors = np.sqrt(1 + variance) * rng.normal(size=(300, 1))
            varies.append(NoiseModel.fit(X, errors, variance, np.ones(1), "auto").shapes != (None,))
        assert np.mean(varies) <= 0.15

    @pytest.mark.parametrize(("kind", "varies"), [("constant", False), ("varying", True)])
    def test_the_kind_can_be_given(self, kind, varies):
        assert (self.model(kind, slope=0.2)[2].shapes != (None,)) is varies

    def test_ratios_are_limited(self):
        X, _, noise = self.model(slope=8.0)
        assert noise(1e6 * X).max() <= 20 * noise.average[0] * (1 + 1e-12)

    def test_no_noise_at_all(self):
        X, _ = rows()
        noise = NoiseModel.fit(X, np.zeros((300, 1)), np.zeros((300, 1)), np.zeros(1), "varying")
        assert_allclose(noise(X), 0)
