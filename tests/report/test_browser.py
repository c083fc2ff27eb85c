"""The page in a real browser: it draws, answers the mouse and the keyboard, and stays quick with many rows."""

import json
from dataclasses import replace

import numpy as np
import pytest

from report.browser import Browser, find_chromium
from unseed import MLP, PNCRegressor
from unseed_app.report import build, checked_rows, write_page, write_report

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10_060, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=len(X)), 100 * X[:, 1]])
OPTIONS = {"network": MLP(bias_scale=1.0), "regularization": 1e-2, "random_state": 0}
REG = PNCRegressor(**OPTIONS).fit(X[:60], Y[:60, 0])
NEW, OBSERVED = X[60:120], Y[60:120, 0]
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"


@pytest.fixture(scope="module")
def browser():
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium on this machine; `make chromium` installs one where it can")
    with Browser(executable) as started:
        yield started


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("report") / "report.html", REG, NEW, OBSERVED)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("report") / "many.html", REG, X[60:], Y[60:, 0])


def labels(browser):
    return browser.run("[...document.querySelectorAll('#table tbody tr')].map((line) => line.cells[0].innerText)")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_it_draws_without_complaint_and_loads_nothing(browser, path, width, dark):
    browser.open(path, width=width, dark=dark)
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('#bands svg').length") == 3
    assert browser.run("document.querySelectorAll('#coverage circle').length") == 11
    shown = browser.run("[...document.querySelectorAll('svg')].every((one) => one.getBoundingClientRect().height > 5)")
    assert shown
    assert "NaN" not in browser.run("document.body.outerHTML.replace(/<script[^]*?<\\/script>/g, '')")


def test_hovering_shows_the_values_of_the_row(browser, path):
    browser.open(path)
    assert browser.run("document.getElementById('tip').hidden")
    browser.move("#catch", 30.5 / 60)
    row = int(np.argsort(REG.predict(NEW), kind="stable")[30])
    low, high = REG.get_prediction(NEW).conf_int(0.95)[row]
    words = browser.text("#tip").replace("−", "-").split("\n")
    assert words[0] == f"Row {row}"
    shown = [float(word) for word in words[2].replace("95\u00a0% confidence ", "").split(" to ")]
    np.testing.assert_allclose(shown, [low, high], rtol=1e-3)
    browser.move("h1")
    assert browser.run("document.getElementById('tip').hidden")


def test_clicking_a_point_explains_that_row(browser, path):
    browser.open(path)
    browser.click("#catch", 10.5 / 60)
    row = int(np.argsort(REG.predict(NEW), kind="stable")[10])
    card = browser.text("#row-body")
    assert card.startswith(f"Row {row}\n")
    for word in (
        "95\u00a0% confidence",
        "95\u00a0% prediction",
        "observed",
        "data",
        "noise",
        "seed, taken out",
        "Why",
        "Its values",
    ):
        assert word in card
    seed = np.sqrt(REG.get_prediction(NEW).components.procedural[row])
    assert f"prediction of this row by ±\u00a0{seed:.3g}" in card
    centres = "['.ring', '#catch'].map((name) => document.querySelector(name).getBoundingClientRect())"
    share = browser.run(f"(([ring, area]) => (ring.x + ring.width / 2 - area.x) / area.width)({centres})")
    assert share == pytest.approx(10.5 / 60, abs=1e-3)


def test_the_least_certain_row_is_shown_first_and_buttons_go_on(browser, path):
    browser.open(path)
    order = np.argsort(-REG.predict(NEW, return_std=True)[1], kind="stable")
    assert browser.text("#row-title") == f"Row {order[0]}"
    assert browser.run("document.getElementById('less').disabled")
    browser.click("#more")
    assert browser.text("#row-title") == f"Row {order[1]}"


def test_rows_are_found_by_keyboard(browser, path):
    browser.open(path)
    browser.run("document.getElementById('search').focus()")
    browser.type("4")
    matches = browser.text("#matches").split("\n")
    assert matches[:3] == ["4", "40", "41"]
    browser.press("ArrowDown")
    browser.press("Enter")
    assert browser.text("#row-title") == "Row 40"
    assert browser.run("document.getElementById('matches').hidden")
    browser.run("document.querySelector('#intervals-plot svg').focus()")
    browser.press("End")
    order = np.argsort(REG.predict(NEW), kind="stable")
    assert browser.text("#row-title") == f"Row {order[-1]}"
    browser.press("ArrowRight")
    assert browser.text("#row-title") == f"Row {order[-1]}"


def test_headings_sort_all_rows(browser, path):
    browser.open(path)
    error = REG.predict(NEW, return_std=True)[1]
    assert labels(browser) == [str(i) for i in np.argsort(-error, kind="stable")[:12]]
    browser.click("[data-key=observed]")
    assert labels(browser) == [str(i) for i in np.argsort(-OBSERVED, kind="stable")[:12]]
    assert browser.run("document.querySelector('[data-key=observed]').parentElement.ariaSort") == "descending"
    browser.click("[data-key=observed]")
    assert labels(browser) == [str(i) for i in np.argsort(OBSERVED, kind="stable")[:12]]
    browser.click("[data-key=label]")
    assert labels(browser) == [str(i) for i in range(12)]
    browser.click("#longer")
    assert len(labels(browser)) == 60
    browser.click("#table tbody tr:nth-child(8)")
    assert browser.text("#row-title") == "Row 7"
    assert browser.complaints == []


def test_outputs_are_switched(browser, tmp_path):
    reg = PNCRegressor(**OPTIONS).fit(X[:60], Y[:60])
    browser.open(write_report(tmp_path / "r.html", reg, NEW, Y[60:120], target_names=["a", "b"]))
    first = browser.text("#row-body")
    browser.run("(() => { const o = document.getElementById('output'); o.value = 1; o.dispatchEvent(new Event('change')); })()")
    order = np.argsort(-reg.predict(NEW, return_std=True)[1][:, 1], kind="stable")
    assert browser.text("#row-title") == f"Row {order[0]}"
    assert browser.text("#row-body") != first
    assert browser.complaints == []


def test_parts_of_ones_own_are_shown_by_their_names(browser, tmp_path):
    content = build(REG, checked_rows(REG, NEW, OBSERVED, 0.95), 0.95)
    output = replace(content.outputs[0], parts={"tides": content.outputs[0].standard_error ** 2})
    write_page(tmp_path / "r.html", replace(content, outputs=(output,)))
    browser.open(tmp_path / "r.html")
    assert browser.complaints == []
    assert "tides" in browser.text("#split")
    assert "Tides: 100\u00a0% of the variance" in browser.text("#row-body")


def test_hostile_names_are_shown_and_do_nothing(browser, tmp_path):
    names = {"feature_names": [HOSTILE] * 3, "target_names": [HOSTILE], "row_labels": [HOSTILE] * 60}
    browser.open(write_report(tmp_path / "r.html", REG, NEW, OBSERVED, **names))
    browser.move("#catch")
    assert browser.text("#tip strong") == HOSTILE
    assert browser.text("#row-title") == HOSTILE
    assert browser.text("#bands h3") == HOSTILE
    assert browser.run("window.hacked") is None
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.complaints == []


@pytest.mark.parametrize("estimator", ["without observations", "without a seed", "one row"])
def test_what_is_not_known_is_not_drawn(browser, tmp_path, estimator):
    if estimator == "without a seed":
        reg = PNCRegressor(solver="landmarks", network=OPTIONS["network"], regularization=1e-2, random_state=0)
        browser.open(write_report(tmp_path / "r.html", reg.fit(X[:80], Y[:80, 0]), NEW, OBSERVED))
        assert browser.run("document.getElementById('seeds').hidden")
        assert "seed" not in browser.text("#table thead")
    elif estimator == "one row":
        browser.open(write_report(tmp_path / "r.html", REG, NEW[:1], OBSERVED[:1]))
        assert browser.run("document.getElementById('features').hidden")  # nothing varies
    else:
        browser.open(write_report(tmp_path / "r.html", REG, NEW))
        assert "No observed values" in browser.text("#coverage")
        assert "observed" not in browser.text("#row-body")
    assert browser.complaints == []


def test_ten_thousand_rows_stay_quick_and_small(browser, many):
    assert many.stat().st_size < 3e6
    browser.open(many)
    assert browser.complaints == []
    assert browser.run("document.querySelectorAll('*').length") < 3000
    assert browser.run("performance.timing.loadEventEnd - performance.timing.navigationStart") < 5000
    clock = "(() => {{ const start = performance.now(); {}; return performance.now() - start; }})()"
    place = json.dumps(browser.centre("#catch"))
    event = f"new PointerEvent('pointermove', {{clientX: {place}[0], clientY: {place}[1]}})"
    hover = f"document.getElementById('catch').dispatchEvent({event})"
    assert browser.run(clock.format(hover)) < 100
    assert browser.run(clock.format("document.querySelector('[data-key=mean]').click()")) < 500
    assert browser.run(clock.format("document.querySelector('#table tbody tr').click()")) < 500
    assert labels(browser)[0] == str(int(np.argmax(REG.predict(X[60:]))))


def test_it_prints(browser, path):
    browser.open(path, dark=True)
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF")
    browser.open(path, dark=True, media="print", width=700)
    assert browser.run("getComputedStyle(document.querySelector('.picker')).display") == "none"
    assert browser.run("getComputedStyle(document.documentElement).getPropertyValue('--panel').trim()") == "#ffffff"
    assert browser.complaints == []
