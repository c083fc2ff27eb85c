"""Tutorials: the code on a page is the script's, the script runs, and it prints the tables of the page."""

import os
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch

ROOT = Path(__file__).parents[1]
PAGES = sorted(path for path in (ROOT / "docs/tutorials").glob("*.md") if path.name != "index.md")
SMALLEST_PICTURE, LARGEST_PICTURE = 5_000, 100_000


def script_of(page):
    return ROOT / "docs/examples" / f"tutorial_{page.stem.replace('-', '_')}.py"


@pytest.fixture(params=PAGES, ids=lambda page: page.stem)
def page(request):
    return request.param


def test_code_on_the_page_is_the_code_of_the_script(page):
    script = script_of(page).read_text()
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert blocks
    shown = [(block, textwrap.indent(block, "    ")) for block in blocks]  # inside a function, or not
    assert [block for block, inner in shown if block not in script and inner not in script] == []


def test_every_script_has_a_page():
    assert {script_of(page) for page in PAGES} == set((ROOT / "docs/examples").glob("tutorial_*.py"))


def test_every_tutorial_is_in_the_list(page):
    assert f"({page.name})" in (ROOT / "docs/tutorials/index.md").read_text()
    assert f"tutorials/{page.name}" in (ROOT / "mkdocs.yml").read_text()


@pytest.mark.filterwarnings("ignore:.*:ResourceWarning", "ignore:Exception ignored")  # sockets of the local cluster
def test_the_script_runs_and_prints_the_tables_of_the_page(page, tmp_path, monkeypatch, capsys):
    script = script_of(page)
    compile(script.read_text(), str(script), "exec")
    needs_gpu = "torch.cuda.is_available()" in script.read_text()
    if needs_gpu and not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU; compiled only")
    for stem, package in (("machines", "distributed"), ("parquet", "pyarrow")):
        if page.stem == stem:
            pytest.importorskip(package)
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [str(script), str(picture)])
    runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(printed) > 2
    if not needs_gpu:  # whose table is about times
        assert [line for line in printed if line not in page.read_text()] == []
    shown = re.findall(r"\.\./images/(\S+\.png)", page.read_text())
    assert picture.exists() == bool(shown)
    for name in shown:
        assert name == f"{script.stem}.png"
        assert picture.stat().st_size > SMALLEST_PICTURE
        assert SMALLEST_PICTURE < (ROOT / "docs/images" / name).stat().st_size < LARGEST_PICTURE


@pytest.mark.slow
def test_ten_million_rows_are_fitted_in_the_memory_of_a_laptop():
    pytest.importorskip("pyarrow")
    command = [sys.executable, str(ROOT / "docs/examples/tutorial_parquet.py"), "10000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    table = [line for line in printed.splitlines() if line.startswith("| 10,")]
    assert len(table) == 2
    assert [line for line in table if line not in (ROOT / "docs/tutorials/parquet.md").read_text()] == []
    assert "10,000,000 rows, summed up in the space of 300 landmarks" in printed
    assert 1024 * usage.ru_maxrss < 1.5e9


def test_a_gpu_script_without_a_gpu_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(SystemExit, match="no CUDA GPU here"):
        runpy.run_path(str(ROOT / "docs/examples/tutorial_gpu.py"), run_name="__main__")
