"""What the documents show must run and be true."""

import importlib
import pydoc
import re
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import yaml

import unseed
import unseed.kernels
import unseed.plots
import unseed.report

mpl.use("Agg")
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("document", ["README.md", "docs/index.md", "docs/which-interval.md"])
def test_python_blocks_run(document, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, document, "exec"), {})
    plt.close("all")


def test_the_page_on_classes_runs_from_top_to_bottom(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/classes.md").read_text(), flags=re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(compile(block, "docs/classes.md", "exec"), names)
    assert len(blocks) == 3
    assert "(5, 2) (5, 2, 2, 1)" in capsys.readouterr().out


@pytest.mark.parametrize("module", [unseed, unseed.plots, unseed.report, unseed.kernels], ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module):
    reference = (ROOT / "docs/api.md").read_text()
    names = [f"{module.__name__}.{name}" for name in module.__all__ if name != "__version__"]
    assert [name for name in names if f"::: {name}\n" not in reference] == []


def test_every_name_in_the_reference_exists():
    for name in re.findall(r"^::: (\S+)$", (ROOT / "docs/api.md").read_text(), flags=re.MULTILINE):
        assert pydoc.locate(name) is not None, name


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")]
    assert [page for page in pages if f" {page}\n" not in navigation] == []


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == unseed.__version__
    assert f'version = "{unseed.__version__}"' in (ROOT / "pyproject.toml").read_text()


@pytest.fixture
def benchmarks(monkeypatch):
    """Scripts that write pages, by name."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


@pytest.mark.parametrize("script", ["results_page", "page", "scaling_page", "small_page", "classes_page"])
def test_figures_of_a_page_are_those_of_its_files(script, benchmarks):
    page = benchmarks(script)
    text = page.PAGE.read_text()
    assert benchmarks("marked").refreshed(text, page.BLOCKS) == text
    assert text.count("<!-- begin") == len(page.BLOCKS)


def test_plots_of_the_benchmarks_are_drawn(benchmarks, tmp_path):
    benchmarks("page").draw(tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (ROOT / "docs/images").glob("benchmark_*.png")}
    assert all(f"images/{name}" in (ROOT / "docs/benchmarks.md").read_text() for name in drawn)


def test_a_promise_is_kept_or_broken_by_its_figure(benchmarks):
    page = benchmarks("page")
    limits = {"two cores": {"figures": {"bootstrap": {"rows": 10, "floor_seconds": 2.0, "peak_matrices": 4.0}}}}
    for seconds, verdict in ((3.0, "yes"), (4.0, "**no**")):
        limits["two cores"]["figures"]["bootstrap"] |= {"seconds": seconds, "ratio": seconds / 2.0}
        lines = [line for line in page.promises(limits).splitlines() if "s of factorisations" in line]
        assert [line.split(" | ")[-1].rstrip("| ") for line in lines] == [verdict]
    assert "Kept: 0 of the 2 that were measured." in page.promises(limits)
    assert "Kept: 0 of the 0 that were measured." in page.promises({})
    assert page.ceilings({}) == "Not measured."


def test_forecasts_of_every_device_and_engine_are_shown(benchmarks):
    page, plots = benchmarks("page"), benchmarks("page_plots")
    point = {"kind": "truth", "rows": 10, "points": 5, "forecast": 1.2, "measured": 1.0}
    costs = {"cpu": {"points": [point]}, "cuda": {"points": [point | {"engine": "network", "measured": 3.0}]}}
    assert "CPU: 1 of 1" in page.costs_summary(costs)
    assert "GPU: 0 of 1" in page.costs_summary(costs)
    assert "| GPU | network | truth | 10 | 5 | 1.2 | 3 | 0.40 | **no** |" in page.costs_table(costs)
    figure = plots.draw_costs(page.forecasts(costs), page.TOLERANCE)
    labels = [text.get_text() for ax in figure.axes for text in ax.get_legend().get_texts()]
    assert {"kernel engine", "network engine"} < set(labels)
    assert page.costs_summary({}) == "Not measured."


EXAMPLES = {"band.py": "", "which_interval.py": "docs/which-interval.md", "comparison.py": "docs/comparison.md"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_and_print_the_tables_of_the_documents(example, tmp_path, monkeypatch, capsys):
    picture, script = tmp_path / "picture.png", ROOT / "docs/examples" / example
    monkeypatch.setattr(sys, "argv", [str(script), str(picture)])
    runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    page = (ROOT / EXAMPLES[example]).read_text() if EXAMPLES[example] else ""
    assert bool(printed) == bool(page)
    assert [line for line in printed if line not in page] == []
    has_picture = (ROOT / "docs/images" / picture.with_stem(script.stem).name).exists()
    assert has_picture == picture.exists()
    assert not has_picture or picture.stat().st_size > 10_000


def test_every_example_is_run():
    others = {path.name for path in (ROOT / "docs/examples").glob("*.py") if not path.name.startswith("tutorial_")}
    assert others == set(EXAMPLES)
