"""Sentences with measured figures: each is written again from the files in results/, and must stand in its page as it is."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PROTOCOLS = ["authors-code.kernel", "authors-code.network", "paper.kernel", "default.kernel"]


@cache
def rows(table, protocol):
    return json.loads((ROOT / f"results/summary.{table}.{protocol}.json").read_text())["rows"]


def ours(table, protocol, method, key):
    """A figure of every row, by features and rows of the data."""
    return {(row["d"], row["n"]): row["ours"][key] for row in rows(table, protocol) if row["method"] == method}


def printed_widths(table):
    """The narrowest that the paper prints."""
    found = {}
    for row in rows(table, "authors-code.kernel"):
        if row.get("theirs"):
            found.setdefault((row["d"], row["n"]), []).append(row["theirs"]["iw95"])
    return {key: min(widths) for key, widths in found.items()}


def wins(table, protocol, method):
    """Rows in which PNC's error is below that method's, of how many."""
    mine, theirs = (ours(table, protocol, name, "mean") for name in ("pnc", method))
    return sum(mine[key] < theirs[key] for key in mine), len(mine)


def losses_to(method):
    """All settings in which that method's error is the smaller one."""
    found = {(table, protocol): wins(table, protocol, method) for table in ("table-2", "table-4") for protocol in PROTOCOLS}
    return {key: n - won for key, (won, n) in found.items() if won < n}


def widths_of_table_1():
    ratios = [
        row["ours"]["iw95"] / row["theirs"]["iw95"]
        for row in rows("table-1", "authors-code.kernel")
        if row["method"] in ("pnc_batching", "pnc_cheap_bootstrap")
    ]
    return len(ratios), round(100 * max(abs(ratio - 1) for ratio in ratios))


def at_x0(method):
    held = ours("table-1", "authors-code.kernel", method, "cr95").values()
    return sum(share < 0.95 for share in held), len(held)


def over_the_domain():
    shares = [
        share
        for method in ("pnc_batching", "pnc_cheap_bootstrap")
        for share in ours("table-1", "authors-code.kernel", method, "domain_cr95").values()
    ]
    return round(100 * min(shares)), round(100 * max(shares))


def default_of_table_1():
    widths, printed = ours("table-1", "default.kernel", "auto", "iw95"), printed_widths("table-1")
    held = min(ours("table-1", "default.kernel", "auto", "domain_cr95").values())
    assert max(widths[key] / printed[key] for key in widths) <= 0.1
    return int(100 * held)


def narrower_in_table_3():
    widths, printed = ours("table-3", "default.kernel", "auto", "iw95"), printed_widths("table-3")
    return sum(widths[key] < printed[key] for key in widths), len(widths)


def h_star(method):
    shares = ours("table-1", "authors-code.kernel", method, "cr95_target").values()
    return round(100 * min(shares)), round(100 * max(shares))


@cache
def small(part):
    return json.loads((ROOT / "results/small.json").read_text())[part]


def functions(*, held_back):
    names = {cell["function"] for cell in small("few") if cell["function"] != "noise" and cell["tuned_on"] is not held_back}
    return len(names)


def inside(part, key="held", **which):
    """Mean and smallest coverage of the cells, in percent."""
    cells = [cell[key] for cell in small(part) if all(cell[name] == value for name, value in which.items())]
    return f"{100 * np.mean(cells):.1f}", f"{100 * min(cells):.0f}"


def width(part):
    return f"{np.exp(np.mean([np.log(cell['width_over_oracle']) for cell in small(part)])):.1f}"


def most_of_noise(key):
    return f"{100 * np.mean([row[key] for row in small('noise')]):.1f}"


def default_in_short():
    held = functions(held_back=True)
    few, smallest = inside("few", tuned_on=False)
    middle, least = inside("middle", tuned_on=False)
    new, _ = inside("new_y", "held_new", tuned_on=False)
    return (
        f"The default is for the regression function. On {held} functions by which no choice was made, 95 % "
        f"intervals held the truth at {few} % of the points with 3 to 32 rows (smallest cell: {smallest} %) and at {middle} % "
        f"with 64 and 256 ({least} %), {width('middle')} times as wide as those of an oracle that knows the error; prediction "
        f"intervals held {new} % of new values from 30 rows on ([all figures](docs/truth.md#measured))."
    )


def errors_beside_ensembles():
    assert losses_to("base_network") == {}
    ((setting, rows_lost),) = losses_to("deep_ensemble_5").items()
    assert setting == ("table-2", "authors-code.network")
    return rows_lost, wins(*setting, "deep_ensemble_5")[1]


CLAIMS = {
    "README.md": [
        default_in_short,
        lambda: "the {} widths of its table 1 come out of closed forms, within {} %,".format(*widths_of_table_1()),
        lambda: (
            "at the one point that the paper looks at those intervals hold the truth in less than 95 % of the data sets in "
            "{} of {} rows (batching) and in {} of {} (cheap bootstrap), at random points {} to {} % of the time;".format(
                *at_x0("pnc_batching"), *at_x0("pnc_cheap_bootstrap"), *over_the_domain()
            )
        ),
        lambda: f"unseed's default holds it at {default_of_table_1()} % or more of them, at a tenth of the width or less;",
        lambda: (
            "PNC has a smaller error than a single network in every row and under every protocol, and than an ensemble of 5 in "
            "all but {} of the {} rows of table 2 with trained networks.".format(*errors_beside_ensembles())
        ),
    ],
    "docs/results.md": [
        lambda: "All {} widths of table 1, from closed forms, within {} %".format(*widths_of_table_1()),
        lambda: "narrower intervals than any printed in table 1 and in {} of {} rows of table 3".format(*narrower_in_table_3()),
        lambda: (
            "taking the seed's noise out of a single network lowers the error in all {} rows of both tables under every "
            "protocol, and PNC has a smaller error than an ensemble of 5 in all but {} of the {} rows of table 2 with trained "
            "networks (than one of 2 in all but {}).".format(
                wins("table-2", "default.kernel", "base_network")[1],
                *errors_beside_ensembles(),
                losses_to("deep_ensemble_2")["table-2", "authors-code.network"],
            )
        ),
        lambda: (
            "batching still holds f(x0) in less than 95 % of the data sets in {} of {} rows, the bootstrap in {} of {};".format(
                *at_x0("pnc_batching"), *at_x0("pnc_cheap_bootstrap")
            )
        ),
        lambda: "the same intervals hold the truth {} to {} % of the time.".format(*over_the_domain()),
        lambda: "they hold h\\* {} to {} % (batching) and {} to {} % (bootstrap) of the time.".format(
            *h_star("pnc_batching"), *h_star("pnc_cheap_bootstrap")
        ),
        lambda: "and f(x0) in {:.3f} to {:.3f} of the data sets".format(
            *(how(ours("table-1", "authors-code.kernel", "algorithm_3", "cr95").values()) for how in (min, max))
        ),
    ],
}


def in_one_line(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("page", CLAIMS)
def test_sentences_say_what_the_files_say(page):
    text = in_one_line((ROOT / page).read_text())
    missing = [sentence for claim in CLAIMS[page] if (sentence := claim()) not in text]
    assert missing == []


@pytest.mark.parametrize(
    ("page", "heading"),
    [("README.md", "## What the intervals promise, and what they do not"), ("README.md", "## The paper's tables")],
)
def test_no_figure_of_a_section_is_without_a_file(page, heading):
    """Percentages, shares and counts of rows are in sentences that a file was asked for."""
    section = in_one_line((ROOT / page).read_text().split(heading)[1].split("\n## ")[0])
    for claim in CLAIMS[page]:
        section = section.replace(claim(), "")
    assert re.findall(r"\d[\d.,]* (?:%|of \d+|times)", section) == []


def test_no_page_takes_two_data_sets_for_a_measurement():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    claimed = {page.name for page in pages if re.search(r"\d\d of (the )?72", page.read_text())}
    assert claimed == {"scoreboard.md"}
    assert "Data sets for each problem: 2." in (ROOT / "docs/scoreboard.md").read_text()


def test_the_scoreboard_counts_its_own_rows():
    text = (ROOT / "docs/scoreboard.md").read_text()
    n_problems, n_settings = map(int, re.search(r"Cells: (\d+) problems and (\d+) settings", text).groups())
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")][1:]
    table = table[: n_problems + n_settings]
    assert {row[1] for row in table[:n_problems]} == {"2"}
    shares = np.array([float(row[2]) for row in table])
    problems, settings = shares[:n_problems], shares[n_problems:]
    good, fair = (sum(problems >= limit) for limit in (0.93, 0.88))
    assert f"at least 0.93: {good} of {n_problems} " in text
    assert f"at least 0.88: {fair} of {n_problems} " in text
    assert f"coverage at least 0.95 in {sum(settings >= 0.95)} of {n_settings} " in text
    assert f"smallest {problems.min():.3f}." in text
