"""Forecasts: formulas by hand, and the command that prints one."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from unseed import (
    MLP,
    SGD,
    AllRows,
    Batching,
    DeepEnsembleRegressor,
    GaussNewton,
    GradientDescent,
    GradientFlow,
    KernelEngine,
    Landmarks,
    LinearizedEngine,
    NetworkEngine,
    PNCRegressor,
)
from unseed import (
    _machine as machine,
)
from unseed._random import Streams
from unseed._solvers import StoppedRidge
from unseed.costs import (
    Growth,
    Job,
    NetworkRates,
    Rates,
    SolverRates,
    TangentRates,
    forecast,
    shortage,
)
from unseed.engines import Cost, Memory, Work
from unseed.engines import _cost as plans
from unseed.errors import InvalidInputError, NotAvailableError, NotEnoughMemoryError
from unseed.networks import make_batch
from unseed_app.cli import app

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


def summed_up(n=10**6, points=0, count=1000, **options):
    reg = PNCRegressor(**{"network": NETWORK, "regularization": 1e-3, "device": "cpu", "solver": Landmarks(count)} | options)
    return Job.of(reg, n, 4, points)


def test_rows_that_are_summed_up_by_hand():
    n, m, points = 10**6, 1000, 50
    once = 1e-6 * n * m + 1e-9 * n * m**2 / 2  # features
    choosing = 0.5e-6 * (2 * m) ** 2 + 1e-9 * (2 * m) ** 3  # among twice as many rows
    for interval, seen, replicates in (("sectioning", 1.0, 5), ("half_sampling", 3.0, 5), ("cheap_bootstrap", 3.528, 5)):
        found = forecast(summed_up(n, points, m, interval=interval), RATES)
        by_hand = choosing + once + seen * 5 / 8 * 1e-9 * n * m**2 + (replicates + 1) * 1e-9 * m**3
        assert found.fitting == pytest.approx(by_hand, rel=0.01)  # the shares of rows are those of the first ones
        assert found.predicting == pytest.approx(1e-6 * m * points)
    truth = forecast(summed_up(n, points, m, interval="truth"), RATES)
    kept = points + 4096
    whole = 1e-6 * m * (points + kept) + 2 * 0.5e-9 * kept * m**2
    assert truth.predicting == pytest.approx(0.04 + whole)


def test_networks_on_all_rows_by_hand():
    n, m, points = 10_000, 500, 50
    sums, rows = (
        forecast(summed_up(n, points, solver=solver, interval="sectioning"), WITH_SOLVERS)
        for solver in (Landmarks(m), AllRows(landmarks=m))
    )
    columns = 121
    each = 1e-7 * n**2 / 2 + 1e-9 * n**2 * columns + 2 * (1e-6 * n * m + 1e-9 * n * m * columns)
    assert rows.fitting - sums.fitting == pytest.approx(8 * each)
    assert rows.predicting - sums.predicting == pytest.approx(1e-6 * points * n)
    assert rows.bytes > sums.bytes + 8 * n * columns
    assert str(rows).endswith("of memory, if 5 iterations find the network on all rows")
    with pytest.raises(InvalidInputError, match="know nothing of solver='all_rows'"):
        forecast(summed_up(n, solver="all_rows"), RATES)


def test_summing_up_is_linear_in_the_rows_and_memory_does_not_grow():
    one, two = (forecast(summed_up(n), RATES) for n in (10**6, 2 * 10**6))
    assert two.fitting == pytest.approx(2 * one.fitting, rel=0.01)
    assert one.bytes == two.bytes
    chosen = Job.of(PNCRegressor(device="cpu"), 10**6, 4)
    assert len(set(chosen.landmarks)) == 1 < len(chosen.landmarks)  # the network and another kind
    assert Job.of(PNCRegressor(device="cpu"), 10**4, 4).landmarks == []
    assert forecast(chosen, RATES).choosing > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": Landmarks(), "engine": LinearizedEngine()}, r"solver=Landmarks.* is for engine='kernel'"),
        ({"points": -1}, r"points=-1 must be a whole number of at least 0"),
        *(({name: 0}, f"{name}=0 must be a whole number of at least 1") for name in ("rows", "features", "outputs", "workers")),
    ],
)
def test_a_job_that_cannot_be_is_refused_at_birth(options, words):
    with pytest.raises(InvalidInputError, match=words):
        Job(**{"rows": 100, "features": 4} | options)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (PNCRegressor(solver="nystrom"), "solver='nystrom' is not known"),
        (PNCRegressor(n_jobs=0), "n_jobs=0 runs nothing"),
    ],
)
def test_what_fit_refuses_has_no_forecast(estimator, words):
    with pytest.raises(InvalidInputError, match=words):
        Job.of(estimator, 100, 4)


@pytest.mark.parametrize("n_jobs", [None, 1, 8])
@pytest.mark.parametrize("engine", [KernelEngine(), KernelEngine(training=GradientFlow(time=1.0))])
def test_memory_is_what_the_engine_asks_for(n_jobs, engine):
    interval = "cheap_bootstrap"
    found = forecast(job(n=5000, interval=interval, n_jobs=n_jobs, engine=engine), WITH_SOLVERS)
    plan = job(n=5000, interval=interval).plan
    assert found.bytes == plans.kernel_memory(plan, copies=0 if engine.converges else 4).needed(n_jobs)


SOLVERS = SolverRates(spectral=Growth(3e-8, 0.0), mixed=Growth(1.5e-9, 0.0), product=1e-8, symmetric=1e-7)
WITH_SOLVERS = replace(RATES, solvers=SOLVERS)


@pytest.mark.parametrize(
    ("training", "of_a_system"),
    [
        (GradientFlow(time=10.0), 1e-8 * 250**3),
        (GradientDescent(steps=9), 1e-8 * 250**3),  # its rate is half the inverse of an eigenvalue
        (GradientDescent(steps=9, rate=0.1), 1e-8 * 10 * 250**2),
        (GradientDescent(steps=400, rate=0.1), 1e-8 * 250**3),
    ],
)
def test_stopped_training_by_hand(training, of_a_system):
    found = forecast(job(engine=KernelEngine(training=training), interval="batching"), WITH_SOLVERS)
    assert found.fitting == pytest.approx(0.5 / 4 + 4 * of_a_system)
    known = replace(WITH_SOLVERS, network=SPEED)
    linear = forecast(job(engine=LinearizedEngine(width=64, training=training), interval=Batching(4)), known)
    two_groups = 1e-8 * 19 * 250**2 if of_a_system == 1e-8 * 10 * 250**2 else of_a_system
    assert linear.fitting == pytest.approx(4 * (0.5 + 2e-4 * 250 + 1e-7 * 250**2 + two_groups))


@pytest.mark.parametrize("steps", [89, 90, 91])
def test_steps_are_taken_where_the_solver_takes_them(steps):
    training = GradientDescent(steps=steps, rate=1e-3)
    ridge = StoppedRidge(torch.eye(60, dtype=torch.float64), torch.ones(60, dtype=torch.float64), 1e-3, training, 60.0)
    ridge.solve(torch.ones(60, 1, dtype=torch.float64))
    (counted,) = training.closed_form_work(60, 1)
    assert counted.rate == ("solvers.spectral" if "spectral" in vars(ridge) else "solvers.product")
    assert ("spectral" in vars(ridge)) == (steps > 1.5 * 60)


def test_mixed_precision_is_for_replicates_without_factors():
    mixed = KernelEngine(precision="mixed")
    found = forecast(job(interval="sectioning", engine=mixed), WITH_SOLVERS)
    assert found.fitting == pytest.approx(0.5 + 1 + 4 * 0.5e-9 * 250**3)


def test_rates_of_solvers_are_measured_where_they_are_asked_for():
    wanted = job(engine=KernelEngine(precision="mixed"))
    found = RATES.completed(wanted).solvers
    assert min(found.spectral(2000), found.mixed(2000), found.product, found.symmetric) > 0
    assert found.spectral(2000) > found.mixed(2000)
    assert forecast(wanted, replace(RATES, solvers=found)).seconds > 0
    with pytest.raises(InvalidInputError, match=r"know nothing of precision='mixed'; take Rates.for_job"):
        forecast(wanted, RATES)
    with pytest.raises(InvalidInputError, match=r"know nothing of training=GradientFlow\("):
        forecast(job(engine=KernelEngine(training=GradientFlow(time=1.0))), RATES)


@pytest.fixture
def little_memory(monkeypatch):
    """Half a gigabyte, wherever it is asked for."""
    for where in (machine, plans):
        monkeypatch.setattr(where, "available_bytes", lambda device: 5 * 10**8)
    for where in ("unseed_app.commands.fit", "unseed.engines._solver"):
        monkeypatch.setattr(f"{where}.available_bytes", lambda device: 5 * 10**8)


def test_a_shortage_names_what_would_fit(little_memory):
    def of(one):
        return shortage(one, forecast(one, replace(WITH_SOLVERS, network=SPEED)).bytes)

    assert of(job()) is None
    whole = job(n=20_000, interval="sectioning", solver="exact")
    with pytest.raises(NotEnoughMemoryError) as refused:
        plans.kernel_memory(whole.plan).check(whole.device)
    assert of(whole) == str(refused.value)
    assert "interval=Batching(batches=" in of(whole)
    assert of(summed_up(count=500)) is None
    words = of(summed_up(count=4000))
    assert words.startswith("1,000,000 rows in spaces of 4,000 landmarks need ")
    assert words.endswith(" GB and 0.5 GB are available; solver=Landmarks(count=500) needs 0.1 GB")


def test_a_shortage_of_finite_networks_names_a_width(little_memory):
    wide = job(n=200, engine=NetworkEngine(width=1_000_000), interval=Batching(4))
    assert "a width of" in shortage(wide, 10**10)
    unknown = replace(wide, network=lambda: torch.nn.Linear(4, 1), engine=NetworkEngine())
    assert "use fewer rows or a smaller network" in shortage(unknown, 10**10)


def test_choosing_the_network_is_counted_and_bounded():
    few, more, many, most = (
        forecast(Job.of(PNCRegressor(device="cpu"), n, 4), RATES).choosing for n in (2000, 4000, 200_000, 2_000_000)
    )
    assert 0 < few == more < many == most


def test_rates_are_positive_on_any_machine():
    rates = Rates.measure(3)
    assert all(value > 0 for value in (rates.cubic, rates.entry, rates.pair, rates.cut, rates.multiplication, rates.evaluation))
    assert rates.quadratic >= 0


SPEED = NetworkRates(
    forward=1e-5, step=1e-4, tangent=TangentRates(1e-4, 1e-7), training_tangent=TangentRates(1e-5, 1e-8), start=0.5
)
C = 1e-9  # of a factorisation, times n³


def finite(engine, points=10, n=1000, **options):
    return forecast(job(points, n, engine=engine, **options), replace(RATES, network=SPEED))


def test_linearized_networks_by_hand():
    found = finite(LinearizedEngine(width=64), interval=Batching(4))
    assert found.fitting == pytest.approx(4 * (0.5 + 2e-4 * 250 + 1e-7 * 250**2 + C * 250**3))
    assert found.predicting == pytest.approx(4 * (1e-4 * 260 + 1e-7 * 2500))
    plan, batch = Batching(4).plan(1000, Streams(0)), make_batch(NETWORK, torch.zeros(1000, 4), 1, 64)
    assert found.bytes == plans.network_memory(batch, plan, 1, 8).needed()


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
    jobs = [job(10, 200, engine=NetworkEngine(width=width), interval=Batching(4)) for width in (64, 4096)]
    known = [RATES.completed(one) for one in jobs]
    for rates in known:
        assert min(rates.network.forward, rates.network.step, rates.network.start) > 0
        assert rates.network.tangent(100, 100) > 0
    small, large = (forecast(one, rates).bytes for one, rates in zip(jobs, known, strict=True))
    assert large > 10 * small > 0
    assert known[1].network.step > known[0].network.step


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


class Polynomials:
    """An engine of a user's own: least squares on powers, of which a machine's rates know nothing."""

    converges, is_infinite = False, False

    def fit(self, task, plan, *, n_jobs=None):
        raise NotImplementedError

    def cost(self, task, plan):
        fits = [Work("powers", (rows, task.X.shape[1])) for rows in plan.distinct_rows]
        own = {"powers": lambda: 1e-5, "solve": lambda: Growth(3e-9, 0.0), "rows of": lambda: TangentRates(0.5, 0.25)}
        return Cost(
            [*fits, Work("solve", (task.X.shape[1],)), Work("rows of.pair", (4,))],
            lambda points: [Work("entry", (points, len(plan.counts)))],
            Memory(8 * task.X.numel(), f"{len(task.X)} rows need {{}}"),
            trials=own,
        )


def test_an_engine_of_ones_own_has_a_forecast():
    mine = Job(1000, 100, points=10, interval=Batching(4), engine=Polynomials(), network=NETWORK)
    found = forecast(mine, RATES.completed(mine))
    assert found.fitting == pytest.approx(1e-5 * 1000 * 100 + 1e-9 * 100**3 + 0.25 * 4)
    assert found.predicting == pytest.approx(1e-6 * 10 * 4)
    assert found.bytes == 8 * 1000 * 100
    with pytest.raises(InvalidInputError, match=r"know nothing of engine=.*Polynomials.*; take Rates.for_job\(job\)"):
        forecast(mine, RATES)


def test_memory_of_ones_own_engine_is_told_short(little_memory):
    mine = Job(10**6, 100, interval=Batching(4), engine=Polynomials(), network=NETWORK)
    words = "1000000 rows need 0.8 GB and 0.5 GB are available; use fewer rows or a smaller network"
    assert shortage(mine, forecast(mine, RATES.completed(mine)).bytes) == words
    mine.cost.memory.check(mine.device)  # nothing is known that would fit: it is tried


def test_what_has_no_forecast_is_said():
    with pytest.raises(NotAvailableError, match="a forecast is for PNCRegressor, not for"):
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
    assert figures["fits"]
    assert not figures["notes"]


def test_dry_run_says_what_does_not_fit_and_what_would(tmp_path, little_memory):
    table = tmp_path / "train.csv"
    values = np.random.default_rng(0).normal(size=(20_100, 2))
    table.write_text("a,y\n" + "\n".join(f"{a:.3f},{y:.3f}" for a, y in values) + "\n")
    arguments = ["fit", str(table), "--target", "y", "--interval", "sectioning", "--dry-run"]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0, said.output
    line = next(line for line in said.output.splitlines() if "does not fit here" in line)
    assert re.search(r"20,100 rows in spaces of [0-9,]+ landmarks need \d\.\d GB", line)
    assert "0.5 GB are available; solver=Landmarks(count=" in line
    figures = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert not figures["fits"]
    assert figures["bytes"] > figures["available_bytes"] == 5 * 10**8
    assert any("Landmarks(count=" in note for note in figures["notes"])
