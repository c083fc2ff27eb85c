"""Forecasts: formulas by hand, and the command that prints one."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from unseed import (
    MLP,
    SGD,
    Batching,
    BlockwisePNCRegressor,
    DeepEnsembleRegressor,
    GaussNewton,
    GradientDescent,
    LinearizedEngine,
    NetworkEngine,
    PNCRegressor,
)
from unseed.cli import app
from unseed.costs import Job, NetworkRates, Rates, TangentRates, forecast
from unseed.errors import InvalidInputError, NotAvailableError

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
        ("truth", 0.5 + 1 + 4 * 1e-9 * 250**3, 0.04 + 2 * 0.01 + 0.5 * (0.01 + 1)),
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


SPEED = NetworkRates(
    forward=1e-5, step=1e-4, tangent=TangentRates(1e-4, 1e-7), training_tangent=TangentRates(1e-5, 1e-8), start=0.5, bytes=10**9
)
C = 1e-9  # of a factorisation, times n³


def finite(engine, points=10, n=1000, **options):
    return forecast(job(points, n, engine=engine, **options), replace(RATES, network=SPEED))


def test_linearized_networks_by_hand():
    found = finite(LinearizedEngine(width=64), interval=Batching(4))
    assert found.fitting == pytest.approx(4 * (0.5 + 2e-4 * 250 + 1e-7 * 250**2 + C * 250**3))
    assert found.predicting == pytest.approx(4 * (1e-4 * 260 + 1e-7 * 2500))
    assert found.bytes == 10**9


@pytest.mark.parametrize(
    ("trainer", "of_a_network", "words"),
    [
        (GradientDescent(steps=9), 10 * 1e-4 * 1000, "about"),
        (GradientDescent(steps=9, tolerance=0.1), 10 * 1e-4 * 1000, "at most about"),
        (SGD(epochs=3), 3 * 2 * 1e-4 * 1000, "at most about"),
        (GaussNewton(steps=5), 5 * (8 * 0.1 + 4 * (2e-5 * 250 + 1e-8 * 250**2 + 6 * C * 250**3)), "about"),
    ],
)
def test_trained_networks_by_hand(trainer, of_a_network, words):
    found = finite(NetworkEngine(width=64, trainer=trainer), interval=Batching(4))
    assert found.fitting == pytest.approx(4 * 0.5 + 2 * of_a_network)
    assert found.predicting == pytest.approx(2 * 4 * 1e-5 * 10)
    assert str(found).startswith(words + " ")


def test_posteriors_and_influences_of_finite_networks_are_counted():
    linear = LinearizedEngine(width=64)
    plain, jackknife = (finite(linear, interval=interval).predicting for interval in ("sectioning", "infinitesimal_jackknife"))
    of_the_points = 1e-4 * 1000 + 1e-7 * 1000 * 10
    once = 1e-4 * 1010 + 1e-7 * 1000 * 10
    assert jackknife == pytest.approx(once + of_the_points + 1e-9 * 10 * 1000**2)
    truth = finite(linear, interval="truth").predicting
    assert truth == pytest.approx(0.04 + plain + of_the_points + 1e-9 * (10 + 1000) * 1000**2 / 2)
    trained = finite(NetworkEngine(width=64), interval="infinitesimal_jackknife").predicting
    assert trained > jackknife  # and the tangent kernel itself


def test_rates_of_a_network_are_positive_and_grow_with_it():
    small, large = (
        Rates.for_job(job(10, 200, engine=NetworkEngine(width=width), interval=Batching(4))).network for width in (64, 4096)
    )
    for rates in (small, large):
        assert min(rates.forward, rates.step, rates.start, rates.bytes) > 0
        assert rates.tangent(100, 100) > 0
    assert large.bytes > 10 * small.bytes
    assert large.step > small.step


def test_modules_have_rates_too():
    def make():
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    reg = PNCRegressor(network=make, engine=NetworkEngine(trainer=SGD(epochs=2)), interval=Batching(2), device="cpu")
    found = Job.of(reg, 60, 4, 5)
    assert not found.chooses
    assert forecast(found, Rates.for_job(found)).seconds > 0


def test_networks_that_are_not_trained_to_the_end_are_not_chosen():
    reg = PNCRegressor(engine=NetworkEngine(trainer=GradientDescent(steps=3)), interval=Batching(2), device="cpu")
    assert not Job.of(reg, 60, 4).chooses
    assert Job.of(PNCRegressor(engine="linearized", device="cpu"), 60, 4).chooses


def test_what_has_no_forecast_is_said():
    with pytest.raises(NotAvailableError, match="a forecast is for PNCRegressor and BlockwisePNCRegressor, not for"):
        Job.of(DeepEnsembleRegressor(), 60, 4)
    with pytest.raises(InvalidInputError, match=r"know nothing of engine=LinearizedEngine.*take Rates.for_job"):
        forecast(job(engine=LinearizedEngine()), RATES)


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
