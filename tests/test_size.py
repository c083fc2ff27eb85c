"""The benchmark of size: its functions, its scores, what a run writes, and the page that shows it."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scaling_page
import size
import size_functions as functions
import size_page
from cost_of_intervals import memory
from marked import refreshed
from size_functions import PROBLEMS

TINY = ("--rows", "300", "--points", "100", "--device", "cpu")
CESSNA = [0.48, 0.4, 0.38, 0.5, 0.62, 0.344, 0.4, 0.37, 0.38, 0]  # 233.9083 without paint
HARTMANN_LOWEST = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "size.json"


def run(out, *arguments):
    return size.main([*TINY, "--out", str(out), *arguments])


# Functions


def test_there_are_enough_functions_of_both_groups():
    assert len(functions.TUNED_ON) >= 8
    assert len(functions.HELD_BACK) >= 6
    assert len(PROBLEMS) == len(functions.TUNED_ON) + len(functions.HELD_BACK) >= 14
    assert not {problem.name for problem in functions.HELD_BACK} & {problem.name for problem in functions.TUNED_ON}
    assert all(problem.is_tuned_on for problem in functions.TUNED_ON)
    assert not any(problem.is_tuned_on for problem in functions.HELD_BACK)


@pytest.mark.parametrize(
    ("name", "at", "value", "tolerance"),
    [
        ("hartmann", HARTMANN_LOWEST, -3.32237, 1e-5),
        ("gramacy-lee", [(0.548563444114526 - 0.5) / 2], -0.869011134989500, 1e-9),
        ("ishigami", [0.75, 0.75, 0.5], 8, 1e-12),  # x = (π/2, π/2, 0)
        ("dette-pepelyshev", [1, 0.5, 0.5], 4 + 1, 1e-12),  # 4 (1 − 2 + 4 − 2)² + (3 − 2)² + 0
        ("friedman", [0.5, 1, 0.5, 1, 1, 0, 0, 0, 0, 0], 10 + 10 + 5, 1e-12),
        ("morokoff-caflisch", [1] * 10, 1.1**10, 1e-12),
        ("g-function", [1] * 8, 2 * 1.5 * (6.5 / 5.5) * 1.1 * 1.01**4, 1e-12),
        ("currin", [0, 0.5], 3 * (1 - np.exp(-1)), 1e-12),
        ("loeppky", [1] * 10, 6 + 4 + 5.5 + 3 + 2.2 + 1.4 + 1 + 0.5 + 0.2 + 0.1, 1e-12),
        ("welch", [0.5] * 11 + [1] + [0.5] * 8, 2.5, 1e-12),  # 5 x₁₂ / (1 + x₁) at x₁₂ = 1/2, all others 0
        ("franke", [2 / 9, 2 / 9], 0.75 + 0.75 * np.exp(-9 / 49 - 0.3) + 0.5 * np.exp(-6.5) - 0.2 * np.exp(-29), 1e-12),
        ("circuit", [0] * 6, (4.74 * 462.5 + 11.35 * 0.5 + 0.74 * 0.5 * 462.5 / 1.2) / 463, 1e-12),
        ("wing-weight", CESSNA, 233.9083 + 174 * 0.025, 1e-6),
        ("levels", [0.5, 0.7, 0.25, 0], 1.75, 1e-12),
        ("kink", [0, 0.5, 1, 0.5, 0.5], np.sqrt(3) * 1.5, 1e-12),
    ],
)
def test_functions_have_the_values_they_are_known_for(name, at, value, tolerance):
    assert_allclose(PROBLEMS[name].function(np.array([at, at], dtype=float)), value, rtol=tolerance)


def test_functions_of_the_literature_as_it_writes_them():
    low, high = functions.BOREHOLE
    r_w, r, t_u, h_u, t_l, h_l, length, k_w = x = low + 0.3 * (high - low)
    ratio = np.log(r / r_w)
    flow = 2 * np.pi * t_u * (h_u - h_l) / (ratio * (1 + 2 * length * t_u / (ratio * r_w**2 * k_w) + t_u / t_l))
    assert_allclose(PROBLEMS["borehole"].function(np.full((1, len(x)), 0.3)), flow)
    low, high = functions.PISTON
    m, s, v_0, k, p_0, t_a, t_0 = x = low + 0.3 * (high - low)
    a = p_0 * s + 19.62 * m - k * v_0 / s
    v = s / (2 * k) * (np.sqrt(a**2 + 4 * k * p_0 * v_0 / t_0 * t_a) - a)
    cycle = 2 * np.pi * np.sqrt(m / (k + s**2 * p_0 * v_0 / t_0 * t_a / v**2))
    assert_allclose(PROBLEMS["piston"].function(np.full((1, len(x)), 0.3)), cycle)


def test_moments_are_those_that_theory_gives():
    importance = np.array([0, 1, 4.5, 9, 99, 99, 99, 99])
    known = {
        "ishigami": 49 / 8 + 0.1 * np.pi**4 / 5 + 0.01 * np.pi**8 / 18 + 0.5,
        "g-function": np.prod(1 + 1 / (3 * (1 + importance) ** 2)) - 1,
        "morokoff-caflisch": ((1 + 1 / 10) ** 2 * 10 / 12) ** 10 - 1,
    }
    for name, variance in known.items():
        assert_allclose(PROBLEMS[name].sd ** 2, variance, rtol=0.03)  # 100,000 draws


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_labels_are_the_truth_and_noise_of_the_size_that_is_said(problem):
    data = problem.data(20_000, 50, seed=3)
    assert data.X.shape == (20_000, problem.dimension)
    assert data.X_new.shape == (50, problem.dimension)
    assert_allclose(data.truth, problem.function(data.X_new))
    noise = (data.y - problem.function(data.X)) / problem.sd
    assert abs(noise.mean()) < 5 * noise.std() / np.sqrt(20_000)
    assert_allclose(noise.std(), functions.NOISE, rtol=0.3 if "t₃" in problem.remark else 0.12)
    assert_allclose(problem.data(20_000, 50, seed=3).y, data.y, rtol=0)
    assert not np.array_equal(problem.data(20_000, 50, seed=4).y, data.y)


def test_noise_that_is_not_of_one_size_and_features_that_hang_together():
    data = PROBLEMS["currin"].data(20_000, 1)
    noise, is_low = data.y - functions.currin(data.X), data.X[:, 0] < 0.1
    assert noise[data.X[:, 0] > 0.9].std() > 3 * noise[is_low].std()
    X = PROBLEMS["loeppky"].data(20_000, 1).X
    assert 0.64 < np.corrcoef(X[:, 0], X[:, 1])[0, 1] < 0.72
    assert_allclose(X.mean(0), 0.5, atol=5 / np.sqrt(12 * 20_000))
    assert_allclose(X.var(0), 1 / 12, rtol=0.05)


# Scores and runs


def test_scores_by_hand():
    problem = PROBLEMS["levels"]
    truth, points = np.zeros(4), np.array([[0.5, 0.2, 0, 0], [0.5, 0.2, 0, 0], [0.34, 0.2, 0, 0], [0.5, 0.61, 0, 0]])
    centre = np.array([1.0, -1.0, 1.0, 1.0])
    half = np.array([2, 0.5, 2, 0.5])
    bounds = np.column_stack([centre - half, centre + half])
    found = size.scores(problem, points, size.Answer(centre, bounds), truth)
    assert found["coverage"] == 0.5
    assert found["coverage_away_from_jumps"] == 0.5  # the first two points
    assert_allclose(found["width_over_oracle"], 2.5 / 3.92)
    assert_allclose(found["rmse_over_sd"], 1 / problem.sd)
    assert set(size.scores(problem, points, size.Answer(centre), truth)) == {"rmse_over_sd"}


def test_a_run_writes_a_line_for_each_cell_and_goes_on_where_it_stopped(out, monkeypatch, capsys):
    names = ("gramacy-lee", "levels")
    assert run(out, "--functions", *names, "--methods", "unseed", "--in-process") == 0
    printed = capsys.readouterr().out
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["function"], line["rows"], line["method"]) for line in lines] == [(name, 300, "unseed") for name in names]
    for line in lines:
        assert 0.75 < line["coverage"] <= 1
        assert 0.3 < line["width_over_oracle"] < 4
        assert 0.01 < line["rmse_over_sd"] < 0.5
        assert min(line["fit_seconds"], line["predict_seconds"]) > 0
        assert line["solver"] == "Exact()"
        assert "peak_bytes" not in line  # other cells were in this process
        assert line["function"] in printed
    assert "n = 300: coverage" in printed

    before = out.read_text()
    out.write_text(before + '{"function": "levels", "rows": 30')  # interrupted within a line
    asked = []
    monkeypatch.setattr(size, "measured", lambda cell, *_, **__: asked.append(cell) or {**lines[0], **cell._asdict()})
    methods = ("--methods", "unseed", "forest", "--in-process")
    assert run(out, "--functions", "levels", *methods) == 0
    assert [(cell.function, cell.method) for cell in asked] == [("levels", "forest")]
    assert len(size.records(out)) == 3
    assert run(out, "--functions", "levels", *methods) == 0
    assert len(asked) == 1


def test_a_cell_in_a_process_of_its_own_knows_its_memory(out):
    assert run(out, "--functions", "franke", "--methods", "forest") == 0
    (record,) = size.records(out)
    assert record["peak_bytes"] > 5e7
    assert not memory._CLEAR.exists() or 0 < record["added_bytes"] < record["peak_bytes"]
    assert record["device"] == "cpu"
    assert "coverage" not in record


def test_landmarks_are_another_cell(out):
    assert run(out, "--functions", "franke", "--methods", "unseed", "--landmarks", "50", "--in-process") == 0
    (record,) = size.records(out)
    assert record["landmarks"] == 50
    assert record["solver"] == "Landmarks(count=50)"
    assert size_page.found(out) == []  # the page is of defaults


def test_what_is_not_installed_is_left_out_by_name_and_what_fails_is_told(out, monkeypatch, capsys):
    monkeypatch.setattr(size, "find_spec", lambda name: None)

    def fails(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setitem(size.METHODS, "forest", fails)
    assert run(out, "--functions", "franke", "--methods", "lightgbm", "catboost", "forest", "--in-process") == 1
    told = capsys.readouterr()
    assert [line.split(",")[0] for line in told.out.splitlines() if "left out" in line] == [
        "left out: lightgbm",
        "left out: catboost",
    ]
    assert "FAILED: MemoryError: no room" in told.err
    assert size.records(out) == []


def test_failure_of_a_process_of_its_own_is_told(out, capsys):
    assert run(out, "--functions", "franke", "--methods", "forest", "--rows", "0") == 1
    assert "FAILED: " in capsys.readouterr().err
    assert run(out, "--functions", "franke", "--methods", "forest", "--limit", "0.01") == 1
    assert "not done after 0 s" in capsys.readouterr().err


# The page


def invented(function, rows, method, **figures):
    common = {"device": "cpu", "landmarks": None, "seed": 0, "points": 2000, "machine": "2 cores", "version": "0"}
    timing = {"fit_seconds": 2.0, "predict_seconds": 0.5, "added_bytes": 2 * 10**9}
    return {"function": function, "rows": rows, "method": method, **common, **timing, **figures}


@pytest.fixture
def measured(out):
    held = {"coverage": 0.96, "width_over_oracle": 1.25, "rmse_over_sd": 0.01}
    aside = {"coverage": 0.85, "width_over_oracle": 5.0, "rmse_over_sd": 0.04, "coverage_away_from_jumps": 0.97}
    gpu = {"device": "cuda", "machine": "H200", "gpu_peak_bytes": 4 * 10**9}
    lines = [
        invented("borehole", 1000, "unseed", **held),
        invented("levels", 1000, "unseed", **aside),
        invented("borehole", 1000, "lightgbm", rmse_over_sd=0.02),
        invented("levels", 1000, "lightgbm", rmse_over_sd=0.03),
        invented("borehole", 10_000, "unseed", **gpu, **held | {"rmse_over_sd": 0.006, "coverage": 1.0}),
        invented("borehole", 10_000, "unseed", **held | {"rmse_over_sd": 0.007}),
    ]
    for line in lines:
        size.append(out, line)
    return out


def test_the_page_says_what_the_lines_say(measured):
    text = size_page.block(measured)
    assert "1 functions that defaults were tuned on, 1 that were held back" in text
    assert "Left out: CatBoost, random forest." in text
    assert "covered at 0.9 of the points or more in 2 of 3 cells" in text
    assert "1,000 rows: RMSE is at most 0.5 of LightGBM's on 1 of 2 functions" in text
    assert "From 1,000 to 10,000 rows RMSE falls to at most 0.6 of what it was on 1 of 1 smooth functions" in text
    assert "| 1,000 | unseed | 2 cores | 2 | .905 | .850 | 1 of 2 | 2.50 | 0.02 | 2 | 2 | 0.5 | 2.00 | – |" in text
    assert "| 10,000 | unseed | H200 | 1 | 1.000 | 1.000 | 1 of 1 | 1.25 | 0.006 | 2 | 2 | 0.5 | 2.00 | 4.00 |" in text
    assert "| 1,000 | LightGBM | 2 cores | 2 | – | – | – | – | 0.0245 | 2 | 2 | 0.5 | 2.00 | – |" in text
    assert "| borehole (held back) | 8 | .960 · 1.25 | 1.000 · 1.25 |" in text
    assert "| levels (jumps) | 4 | **.850**, away .970 · 5.00 |  |" in text
    assert "| borehole (held back) | **0.01** / 0.02 | **0.006** / – |" in text
    assert "| levels (jumps) | 0.04 / **0.03** | – / – |" in text


def test_plots_are_drawn_of_what_was_measured_and_of_nothing_else(measured, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    size_page.draw(folder, tmp_path / "nowhere.json")
    assert list(folder.iterdir()) == []
    assert size_page.block(tmp_path / "nowhere.json").startswith("Not measured yet")
    size_page.draw(folder, measured)
    assert {path.name for path in folder.iterdir()} == set(size_page.PICTURES)
    assert all(f"(images/{name})" in size_page.block(measured) for name in size_page.PICTURES)


def test_figures_of_the_page_are_those_of_the_results():
    if not size.OUT.exists():
        pytest.skip("results/size.json is not there: python benchmarks/size.py measures it")
    text = scaling_page.PAGE.read_text()
    assert refreshed(text, scaling_page.BLOCKS) == text
    assert size_page.block() in text
    pictures = {path.name for path in (Path(scaling_page.PAGE).parent / "images").glob("size_*.png")}
    assert pictures == set(size_page.PICTURES)
