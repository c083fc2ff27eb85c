"""One new file and one line in the list: engine, interval method and loss of the pages, added to a copy of the library."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unseed import MLP, DeepEnsembleRegressor, PNCRegressor
from unseed.errors import InvalidInputError

ROOT = Path(__file__).parents[1]
MODULES = {
    "unseed.engines._protocol": ("Capability", "Engine", "LeftOut", "Trained"),
    "unseed.engines._task": ("NewPoints", "Probe", "Task"),
    "unseed._findings": ("Finding",),
    "unseed._resampling": ("Plan",),
    "unseed._results": ("Estimate",),
    "unseed._random": ("Streams",),
    "unseed.intervals._method": ("IntervalMethod", "Replicates"),
    "unseed.losses._loss": ("Loss",),
}
USE = """
import numpy as np
from unseed import MLP, PNCRegressor
X = np.random.default_rng(0).normal(size=(60, 2))
options = {"network": MLP(bias_scale=1.0), "regularization": 0.1, "random_state": 0}
reg = PNCRegressor(engine="random_features", interval="delete_ten_percent", **options).fit(X, X[:, 0])
print(reg.engine_, reg.interval_, reg.predict_interval(X[:3])[1].shape)
reg.save("model")
print((PNCRegressor.load("model").predict(X[:3]) == reg.predict(X[:3])).all())
for option in ("engine", "interval", "loss"):
    try:
        PNCRegressor(**{option: "median"}).fit(X, X[:, 0])
    except ValueError as error:
        print(error)
reg = PNCRegressor(loss="log_cosh", **options).fit(X, X[:, 0])
reg.save("other")
print(reg.loss_, (PNCRegressor.load("other").predict_interval(X[:3])[1] == reg.predict_interval(X[:3])[1]).all())
"""


def parts_of(page):
    """A file with the page's classes, and where it says that file and line go."""
    text = (ROOT / "docs" / f"write-your-own-{page}.md").read_text(encoding="utf-8")
    last = text[text.index("## One for everybody") :]
    file, place = (ROOT / re.search(pattern, last)[1] for pattern in (r"`(src/\S+/_\w+\.py)`", r"`(src/\S+/__init__\.py)`"))
    entry = re.search(r"```text\n(.*)\n```", last)[1]
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    shown = [block for block in blocks if re.search(r"^class ", block, re.M)]
    code = "\n\n".join(block.split("\n\n\nreg = ")[0] for block in shown)
    code = code.split('options = {"network"')[0]
    for module, names in MODULES.items():
        if found := [name for name in names if re.search(rf"^from unseed\.\w+ import .*\b{name}\b", code, re.M)]:
            code = re.sub(
                r"^(from unseed\.(?!errors))", f"from {module} import {', '.join(found)}\n\\1", code, count=1, flags=re.M
            )
    code = re.sub(r"^from unseed\.(engines|intervals|losses) import .*\n", "", code, flags=re.M)
    return file.relative_to(ROOT), place.relative_to(ROOT), entry, f'"""From the page."""\n\n{code.strip()}\n'


@pytest.mark.parametrize("page", ["engine", "interval", "loss"])
def test_the_code_of_a_page_keeps_the_rules_of_the_house(page):
    file, _, _, code = parts_of(page)
    ruff = Path(sys.executable).parent / "ruff"
    command = [str(ruff), "check", "--no-cache", "--ignore", "I001,E402", "--stdin-filename", str(ROOT / file), "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    untyped = re.findall(r"def \w+\([^)]*\):", code)
    assert untyped == []


def test_one_file_and_one_line_add_an_engine_an_interval_method_and_a_loss(tmp_path):
    shutil.copytree(ROOT / "src" / "unseed", tmp_path / "src" / "unseed", ignore=shutil.ignore_patterns("__pycache__"))
    for page in ("engine", "interval", "loss"):
        file, place, entry, code = parts_of(page)
        (tmp_path / file).write_text(code, encoding="utf-8")
        lines = (tmp_path / place).read_text(encoding="utf-8").splitlines(keepends=True)
        (start,) = [number for number, line in enumerate(lines) if "= listed(" in line]
        end = lines.index(")\n", start)
        (tmp_path / place).write_text("".join([*lines[:end], entry + "\n", *lines[end:]]), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "RandomFeatures(count=200, frequency=0.3) DeleteTenPercent() (3, 2, 1)"
    assert said[1] == "True"
    for line, name in zip(said[2:5], ("random_features", "delete_ten_percent", "log_cosh"), strict=True):
        assert f"is not known; use '{'auto' if 'interval' in line else ''}" in line
        assert f"'{name}' or an object such as" in line
    assert said[5] == "LogCosh() True"


RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(80, 2)), RNG.normal(size=(9, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=80)
OPTIONS = {"network": MLP(bias_scale=1.0), "regularization": 1e-4, "random_state": 0}


@pytest.fixture(scope="module")
def engine():
    names = {"__name__": "page"}
    sys.modules["page"] = sys.modules[__name__]
    exec(parts_of("engine")[3], names)
    return names["BayesianFeatures"](count=100)


def test_batches_of_the_page_s_engine_have_noise_but_no_posterior(engine):
    reg = PNCRegressor(engine=engine, interval="batching", **OPTIONS).fit(X, Y)
    whole = PNCRegressor(engine=engine, interval="sectioning", **OPTIONS).fit(X, Y)
    assert not reg._replicates.has_posterior
    assert whole._replicates.has_posterior
    assert reg.diagnose().findings
    # The estimate's own standard deviation is 8 % of the noise's with 80 degrees of freedom, 13 % with 30.
    for one in (reg, whole):
        assert np.sqrt(one.get_prediction(X_NEW).components.noise).mean() == pytest.approx(0.1, rel=0.4)


def test_members_of_the_page_s_engine_differ(engine):
    ensemble = DeepEnsembleRegressor(engine=engine, members=4, interval="members", **OPTIONS).fit(X, Y)
    spread = ensemble.get_prediction(X_NEW).standard_error
    assert (spread > 1e-4).all()
    assert spread.mean() < 0.3


def test_the_page_s_engine_and_method_refuse_what_they_cannot_do(engine):
    with pytest.raises(InvalidInputError, match=r"regularization=0.0 is not enough for BayesianFeatures"):
        PNCRegressor(engine=engine, **OPTIONS | {"regularization": 0.0}).fit(X, Y)
    names = {"__name__": "page"}
    exec(parts_of("interval")[3], names)
    with pytest.raises(InvalidInputError, match=r"leaves out tenths and got n_samples=9"):
        PNCRegressor(interval=names["DeleteTenPercent"](), **OPTIONS).fit(X[:9], Y[:9])
    assert PNCRegressor(interval=names["DeleteTenPercent"](), **OPTIONS).fit(X, Y).diagnose().outlook == ""
