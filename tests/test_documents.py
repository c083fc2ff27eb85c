"""What the documents show must run and be true."""

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


def test_tables_of_the_results_page_are_those_of_the_summaries():
    page = runpy.run_path(str(ROOT / "benchmarks/results_page.py"))
    text = (ROOT / "docs/results.md").read_text()
    assert page["refreshed"](text) == text
    assert text.count("<!-- begin") == len(page["BLOCKS"])


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
