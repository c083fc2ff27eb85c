"""Forecasts: formulas by hand, and the command that prints one."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from unseed import MLP, BlockwisePNCRegressor, LinearizedEngine, PNCRegressor
from unseed.cli import app
from unseed.costs import Job, Rates, forecast
from unseed.errors import NotAvailableError

RATES = Rates(cubic=3e-9, quadratic=0.0, entry=1e-6, pair=1e-6, cut=0.0, multiplication=1e-9, evaluation=0.01, start=0.0)
NETWORK = MLP(bias_scale=1.0)


def job(points=0, n=1000, **options):
    return Job.of(PNCRegressor(network=NETWORK, regularization=1e-3, device="cpu", **options), n, 4, points)


@pytest.mark.parametrize(
    ("interval", "fitting", "predicting"),
    [
        ("batching", 0.5e-6 * 1000**2 / 4 + 4 * 1e-9 * 250**3, 0.01),
        ("sectioning", 0.5 + 1 + 4 * 1e-9 * 250**3, 0.01),
        ("half_sampling", 0.5 + 1 + 4 * 1e-9 * 500**3, 0.01),
        ("infinitesimal_jackknife", 0.5 + 1, 0.01 + 0.01),
        ("truth", 0.5 + 1 + 4 * 1e-9 * 250**3, 0.01 + 0.5 * (0.01 + 1)),
    ],
)
def test_formulas(interval, fitting, predicting):
    found = forecast(job(10, interval=interval), RATES)
    assert found.fitting == pytest.approx(fitting)
    assert found.predicting == pytest.approx(predicting)
    assert found.choosing == 0


def test_bootstrap_counts_its_distinct_rows():
    found = forecast(job(interval="cheap_bootstrap"), RATES)
    assert found.fitting == pytest.approx(0.5 + 1 + 4 * 0.632**3, rel=0.02)
    assert 8e6 < found.bytes < 3 * 8e6


def test_blocks_are_linear_and_machines_share_them():
    reg = BlockwisePNCRegressor(block_size=1000, network=NETWORK, device="cpu", n_jobs=1)
    one, two = (forecast(Job.of(reg, n, 4, 100), RATES).seconds for n in (10**6, 2 * 10**6))
    assert two == pytest.approx(2 * one)
    assert one == pytest.approx(1000 * (0.5 + 1) + 100)


def test_choosing_the_network_is_counted_and_bounded():
    small, large = (forecast(Job.of(PNCRegressor(device="cpu"), n, 4), RATES).choosing for n in (2000, 200_000))
    assert 0 < small == large


def test_rates_are_positive_on_any_machine():
    rates = Rates.measure(3)
    assert all(value > 0 for value in (rates.cubic, rates.entry, rates.pair, rates.cut, rates.multiplication, rates.evaluation))
    assert rates.quadratic >= 0


def test_other_engines_have_no_forecast():
    with pytest.raises(NotAvailableError, match="a forecast is for the kernel engine"):
        job(engine=LinearizedEngine())


def test_dry_run_prints_a_forecast_and_writes_nothing(tmp_path):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a:.3f},{b:.3f},{a + b:.3f}" for a, b in rng.normal(size=(50, 2)))
    (tmp_path / "train.csv").write_text("a,b,y\n" + rows + "\n")
    arguments = ["fit", str(tmp_path / "train.csv"), "--target", "y", "--out", str(tmp_path / "model"), "--dry-run"]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0, said.output
    assert "would take about" in said.output
    assert "Nothing was written" in said.output
    assert not (tmp_path / "model").exists()
    figures = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert figures["rows"] == 50
    assert figures["choosing"] > 0
