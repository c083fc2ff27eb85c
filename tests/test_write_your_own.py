"""What the pages "Write your own ..." show runs, and what is written that way goes all the way from fit to report."""

import re
import sys
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from unseed import MLP, NetworkEngine, PNCRegressor
from unseed.engines import NewPoints, Task
from unseed.errors import InvalidInputError, ModelFileError
from unseed.intervals import Plan
from unseed.networks import Activation
from unseed.report import write_report

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.name for path in DOCS.glob("write-your-own-*.md"))
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(60, 2)), RNG.normal(size=(12, 2))
Y, Y_NEW = (np.sin(rows[:, 0]) + 0.1 * RNG.normal(size=len(rows)) for rows in (X, X_NEW))


@cache
def names_of(page):
    """What the code of a page defines and computes, block after block."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    module = sys.modules[page] = ModuleType(page)
    for block in blocks:
        exec(compile(block, page, "exec"), vars(module))
    return vars(module)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_and_its_model_comes_back(page):
    names = names_of(page)
    rows = names["X"][400:]
    assert_array_equal(names["again"].predict_interval(rows)[1], names["interval"])


def algebraic_sigmoid(**options):
    return Activation("algebraic", lambda u: u / (1 + u.square()).sqrt(), **options)


def goes_all_the_way(folder, parameter, **options):
    """Fit, interval, diagnosis, folder and back, report: the fitted model, and the report's text."""
    options = {"network": MLP(bias_scale=1.0), "regularization": 0.1, "random_state": 0} | options
    reg = PNCRegressor(**options).fit(X, Y)
    y_hat, interval = reg.predict_interval(X_NEW)
    assert ((interval[:, 0, 0] < y_hat) & (y_hat < interval[:, 1, 0])).all()
    assert_allclose(reg.get_prediction(X_NEW).conf_int(0.95), interval[:, :, 0], rtol=1e-12)  # sums in another order
    assert str(reg.diagnose())

    reg.save(folder / "model")
    with pytest.raises(ModelFileError, match=f"{parameter} is code of your own"):
        PNCRegressor.load(folder / "model")
    again = PNCRegressor.load(folder / "model", **{parameter: options[parameter]})
    assert_array_equal(again.predict_interval(X_NEW)[1], interval)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # figures of twelve test rows
        write_report(folder / "report.html", again, X_NEW, Y_NEW)
    return reg, (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"engine": "linearized"},
        {"engine": NetworkEngine(width=64, dtype="float64")},
        {"interval": "infinitesimal_jackknife"},
    ],
    ids=str,
)
def test_an_activation_of_ones_own_goes_all_the_way(options, tmp_path):
    own = algebraic_sigmoid(derivative=lambda u: (1 + u.square()) ** -1.5)
    network = MLP(activation=own, bias_scale=1.0, scale_inputs=True, width=64)
    reg, report = goes_all_the_way(tmp_path, "network", network=network, **options)
    assert "algebraic" in str(reg.network)
    assert "algebraic, 1 hidden layer" in report


def test_an_interval_of_ones_own_goes_all_the_way(tmp_path):
    own = names_of("write-your-own-interval.md")["DeleteTenPercent"]()
    _, report = goes_all_the_way(tmp_path, "interval", interval=own)
    assert "leave out one tenth of the rows" in report


@pytest.mark.parametrize("engine", ["RandomFeatures", "BayesianFeatures"])
def test_an_engine_of_ones_own_goes_all_the_way(engine, tmp_path):
    own = names_of("write-your-own-engine.md")[engine]
    reg, report = goes_all_the_way(tmp_path, "engine", engine=own(count=40), regularization=1e-3)
    assert "40 random features" in report
    assert np.mean((reg.predict(X_NEW) - np.sin(X_NEW[:, 0])) ** 2) < 0.1
    finding = "No row decides alone what is predicted."
    assert (finding in report) == bool(own().capabilities) == (finding in [one.sentence for one in reg.diagnose().findings])


def test_left_out_errors_of_the_page_are_those_of_refits():
    own, y = names_of("write-your-own-engine.md")["BayesianFeatures"](count=20), torch.tensor(Y)[:, None, None]
    rows, plan = torch.tensor(X), Plan(np.ones((1, 60), dtype=np.int64), (0,))
    trained = own.fit(Task(rows, y, MLP(), 0.1), plan)
    found = trained.leave_out(torch.tensor([3, 17]))
    for place, row in enumerate((3, 17)):
        kept = np.arange(60) != row
        task = Task(rows[kept], y[kept], MLP(), 0.1 * 60 / 59)
        without = own.fit(task, Plan(np.ones((1, 59), dtype=np.int64), (0,)))
        at = NewPoints(rows[[row]])
        assert_allclose(found.errors[place], y[row, 0] - without.predict(at)[0, 0, 0], rtol=1e-9)
        # The amplitude of the posterior is that of all rows.
        variance = without.posterior_variance(at)[0] / without.amplitude * trained.amplitude
        assert_allclose(found.variance[place], variance, rtol=1e-9)
        assert_allclose(trained.posterior_covariance(at)[0, 0], trained.posterior_variance(at)[0], rtol=1e-9)


def test_a_loss_of_ones_own_goes_all_the_way(tmp_path):
    own = names_of("write-your-own-loss.md")["HalfSquared"]()
    reg, report = goes_all_the_way(tmp_path, "loss", loss=own, regularization=0.05)
    square = PNCRegressor(network=MLP(bias_scale=1.0), regularization=0.1, random_state=0).fit(X, Y)
    assert_allclose(reg.predict_interval(X_NEW)[1], square.predict_interval(X_NEW)[1], rtol=1e-9)
    assert "HalfSquared()" in report


def test_a_loss_that_bends_goes_all_the_way(tmp_path):
    own = names_of("write-your-own-loss.md")["LogCosh"]()
    reg, report = goes_all_the_way(tmp_path, "loss", loss=own)
    assert "LogCosh()" in report
    assert str(reg.interval_) == "LaplaceInterval()"


def test_a_loss_that_bends_the_wrong_way_is_refused_in_the_words_of_the_page():
    names, page = names_of("write-your-own-loss.md"), (DOCS / "write-your-own-loss.md").read_text(encoding="utf-8")
    with pytest.raises(InvalidInputError) as refusal:
        PNCRegressor(loss=names["Bounded"](), network=MLP(), regularization=0.1).fit(X, Y)
    assert f"```text\n{refusal.value}\n```" in page


@pytest.mark.parametrize("engine", ["linearized", NetworkEngine(width=64)])
def test_other_engines_refuse_a_loss_that_bends(engine):
    own = names_of("write-your-own-loss.md")["LogCosh"]()
    with pytest.raises(InvalidInputError, match=r"loss='log_cosh' bends, and so far it takes .*use engine='kernel' instead of"):
        PNCRegressor(engine=engine, loss=own, network=MLP(), regularization=0.1).fit(X, Y)


def test_another_activation_is_noticed_when_a_model_is_loaded(tmp_path):
    network = MLP(activation=algebraic_sigmoid(), bias_scale=1.0)
    PNCRegressor(network=network, regularization=0.1, random_state=0).fit(X, Y).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="predict otherwise"):
        PNCRegressor.load(tmp_path / "model", network=MLP(activation="tanh", bias_scale=1.0))


def test_an_activation_of_ones_own_is_the_named_one_where_they_are_the_same():
    fits = [
        PNCRegressor(network=MLP(activation=activation, bias_scale=1.0), regularization=0.1, random_state=0).fit(X, Y)
        for activation in ("erf", Activation("error function", torch.erf))
    ]
    assert_allclose(*(fit.predict_interval(X_NEW)[1] for fit in fits), rtol=1e-9)
