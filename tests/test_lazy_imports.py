"""What is not asked for is not imported, seen from a fresh process."""

import subprocess
import sys

import pytest

import unseed

HEAVY = ("torch", "numpy", "scipy", "sklearn", "joblib", "pandas", "matplotlib", "pyarrow", "openpyxl", "unseed_paper")
COMMAND = """
import sys
sys.argv = {arguments}
from unseed_app.__main__ import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def modules_after(code):
    """Names of everything that a process has imported when the code has run."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_importing_the_library_loads_no_numbers():
    loaded = modules_after("import sys, unseed; print(*sys.modules, file=sys.stderr)")
    assert "unseed" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        *([command, "--help"] for command in ("demo", "fit", "predict", "report", "diagnose", "reproduce", "benchmark")),
    ],
    ids=" ".join,
)
def test_help_and_version_load_no_numbers(arguments):
    loaded = modules_after(COMMAND.format(arguments=["unseed", *arguments]))
    assert "unseed_app.cli" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_test_sees_what_is_loaded():
    assert not modules_after("import sys, unseed; unseed.MLP; print(*sys.modules, file=sys.stderr)").isdisjoint(HEAVY)


def test_a_name_that_is_gone_says_what_to_write_instead():
    words = (
        r"BlockwisePNCRegressor is gone: PNCRegressor takes any number of rows .*solver='all_rows'.* what centre='full' was$"
    )
    with pytest.raises(AttributeError, match=words):
        unseed.BlockwisePNCRegressor  # noqa: B018
    with pytest.raises(ImportError, match=words):
        exec("from unseed import BlockwisePNCRegressor")
    assert not hasattr(unseed, "BlockwisePNCRegressor")
    assert "BlockwisePNCRegressor" not in dir(unseed)
    with pytest.raises(ImportError, match="cannot import name 'Blocks'"):
        exec("from unseed import Blocks")
