"""What the pages "Write your own ..." show runs, and what is written that way goes all the way from fit to report."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from unseed import MLP, NetworkEngine, PNCRegressor
from unseed.errors import ModelFileError
from unseed.networks import Activation
from unseed.report import write_report

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.name for path in DOCS.glob("write-your-own-*.md"))
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(60, 2)), RNG.normal(size=(12, 2))
Y, Y_NEW = (np.sin(rows[:, 0]) + 0.1 * RNG.normal(size=len(rows)) for rows in (X, X_NEW))


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)
    assert blocks
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def algebraic_sigmoid(**options):
    return Activation("algebraic", lambda u: u / (1 + u.square()).sqrt(), **options)


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
    reg = PNCRegressor(network=network, regularization=0.1, random_state=0, **options).fit(X, Y)
    y_hat, interval = reg.predict_interval(X_NEW)
    assert ((interval[:, 0, 0] < y_hat) & (y_hat < interval[:, 1, 0])).all()
    assert_array_equal(reg.get_prediction(X_NEW).conf_int(0.95), interval[:, :, 0])
    assert "algebraic" in str(reg.network)
    assert str(reg.diagnose())

    reg.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="network is code of your own"):
        PNCRegressor.load(tmp_path / "model")
    again = PNCRegressor.load(tmp_path / "model", network=network)
    assert_array_equal(again.predict_interval(X_NEW)[1], interval)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # figures of twelve test rows
        write_report(tmp_path / "report.html", again, X_NEW, Y_NEW)
    assert "algebraic, 1 hidden layer" in (tmp_path / "report.html").read_text()


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
