"""What other intervals hold: one job, five data sets, the same rows for every method, textbook settings, nothing tuned."""

import warnings

import numpy as np
from mapie.regression import CrossConformalRegressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unseed import PNCRegressor

ROWS, NEW, NOISE = 100, 500, 1.0


def unseed(X, y, X_new):
    """`PNCRegressor()`: prediction, ends of the interval for f and of the one for y."""
    prediction = PNCRegressor(random_state=0).fit(X, y).get_prediction(X_new)
    return prediction.mean, prediction.conf_int(0.95).T, prediction.pred_int(0.95).T


def network(seed):
    """Two layers of 100 neurons, rows and labels standardised."""
    layers = MLPRegressor(hidden_layer_sizes=(100, 100), max_iter=300, random_state=seed)
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), layers), transformer=StandardScaler())


def process(n_features):
    """Gaussian process with an RBF kernel, a length for every feature, and noise."""
    kernel = ConstantKernel(1.0, (1e-4, 1e6)) * RBF(np.full(n_features, 3.0), (1e-2, 1e4)) + WhiteKernel(0.1, (1e-10, 1e2))
    return make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))


def mapie_around_a_network(X, y, X_new):
    """An interval for y alone."""
    return conformal(network(0), X, y, X_new)


def mapie_around_a_gaussian_process(X, y, X_new):
    """An interval for y alone."""
    return conformal(process(X.shape[1]), X, y, X_new)


def conformal(model, X, y, X_new):
    """Jackknife+ over five folds (CV+)."""
    mapie = CrossConformalRegressor(model, confidence_level=0.95, method="plus", cv=5, random_state=0)
    prediction, intervals = mapie.fit_conformalize(X, y).predict_interval(X_new)
    return prediction, None, intervals[..., 0].T


def gaussian_process(X, y, X_new):
    """Its own interval for f, and with the noise for y."""
    model = process(X.shape[1]).fit(X, y)
    mean, deviation = model.predict(X_new, return_std=True)
    noise = model[-1].kernel_.k2.noise_level * y.var()
    return mean, around(mean, np.sqrt(np.maximum(deviation**2 - noise, 0))), around(mean, deviation)


def deep_ensemble(X, y, X_new):
    """Five such networks, ± 1.96 standard deviations of the members."""
    predictions = np.array([network(seed).fit(X, y).predict(X_new) for seed in range(5)])
    mean = predictions.mean(axis=0)
    return mean, around(mean, predictions.std(axis=0, ddof=1)), None


def around(mean, deviation):
    """Ends of a 95 % interval of the normal law."""
    return mean - 1.96 * deviation, mean + 1.96 * deviation


def held(interval, values):
    """Share of values that an interval holds, and its average half width; unknown where a method gives none."""
    if interval is None:
        return np.nan, np.nan
    low, high = interval
    return np.mean((low <= values) & (values <= high)), np.mean(high - low) / 2


def judged(method, seed):
    """Error, share of f and of new y held, and half widths of both intervals."""
    X, y = make_friedman1(ROWS, noise=NOISE, random_state=seed)
    X_new, f = make_friedman1(NEW, noise=0.0, random_state=1000 + seed)
    y_new = f + NOISE * np.random.default_rng(seed).standard_normal(NEW)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that stop at 300 rounds, lengths at their bounds
        prediction, for_f, for_y = method(X, y, X_new)
    return [np.sqrt(np.mean((prediction - f) ** 2)), *held(for_f, f), *held(for_y, y_new)]


print("| method | RMSE | f inside | half width for f | new y inside | half width for y |")
print("|---|---|---|---|---|---|")
METHODS = (unseed, gaussian_process, mapie_around_a_gaussian_process, mapie_around_a_network, deep_ensemble)
for method in METHODS:
    cells = np.mean([judged(method, seed) for seed in range(5)], axis=0)
    words = " | ".join("" if np.isnan(cell) else f"{cell:.2f}" for cell in cells)
    print(f"| {method.__name__.replace('_', ' ')} | {words} |")
