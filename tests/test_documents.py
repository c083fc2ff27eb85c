"""What the documents show must run and be true."""

import re
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import yaml

import unseed

mpl.use("Agg")
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("document", ["README.md", "docs/index.md", "docs/which-interval.md"])
def test_python_blocks_run(document, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, document, "exec"), {})
    plt.close("all")


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs/api.md").read_text()
    missing = [name for name in unseed.__all__ if name != "__version__" and f"::: unseed.{name}\n" not in reference]
    assert missing == []


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == unseed.__version__
    assert f'version = "{unseed.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_tables_of_the_results_page_are_those_of_the_summaries():
    page = runpy.run_path(str(ROOT / "benchmarks/results_page.py"))
    text = (ROOT / "docs/results.md").read_text()
    assert page["refreshed"](text) == text
    assert text.count("<!-- begin") == len(page["BLOCKS"])


@pytest.mark.parametrize("example", sorted((ROOT / "docs/examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run_and_print_the_tables_of_the_documents(example, tmp_path, monkeypatch, capsys):
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [str(example), str(picture)])
    runpy.run_path(str(example), run_name="__main__")
    assert picture.stat().st_size > 10_000
    documents = "".join(path.read_text() for path in ROOT.glob("docs/*.md"))
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert [line for line in printed if line not in documents] == []
