"""The page as text: valid, self-contained, and deaf to hostile names."""

import base64
import hashlib
import json
import re
import resource
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from unseed import MLP, PNCRegressor, SingleNetworkRegressor
from unseed.errors import InvalidInputError
from unseed_app.report import build, checked_rows, in_short, write_report

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.column_stack([X[:, 0] + 0.1 * RNG.normal(size=80), X[:, 1] ** 2])
OPTIONS = {"network": MLP(bias_scale=1.0), "regularization": 1e-2, "random_state": 0}
REG = PNCRegressor(**OPTIONS).fit(X[:60], Y[:60, 0])
BOTH = PNCRegressor(**OPTIONS).fit(X[:60], Y[:60])
HOSTILE = ["</script><script>hacked()</script>", '"><img src=x onerror=hacked()>', "<!-- \u2028 & ${data} $data 'quote'"]
VOID = {"meta", "input", "link", "img", "br"}


class Reader(HTMLParser):
    """Tags, attributes and text; complains about tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.data = [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.data.setdefault(self.open[-1], []).append(data)

    def all(self, name):
        return [attributes[name] for _, attributes in self.tags if name in attributes]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    names = {"feature_names": HOSTILE, "target_names": HOSTILE[:2], "row_labels": [HOSTILE[i % 3] for i in range(20)]}
    write_report(path, BOTH, X[60:], Y[60:], source=f"unseed report {HOSTILE[0]}", **names)
    return path.read_text(encoding="utf-8")


def test_tags_match_and_references_lead_somewhere(page):
    reader = Reader(page)
    ids = reader.all("id")
    assert len(ids) == len(set(ids))
    for name in ("for", "aria-labelledby", "aria-controls"):
        assert set(reader.all(name)) <= {*ids, "row-title"}  # the row's heading is drawn by the script
    assert [tag for tag, _ in reader.tags].count("h1") == 1
    assert dict(reader.tags)["html"] == {"lang": "en"}
    assert "viewport" in reader.all("name")


def test_nothing_is_loaded(page):
    reader = Reader(page)
    assert reader.all("src") == []
    assert [link for link in reader.all("href") if not link.startswith("#")] == []
    assert "url(" not in re.sub(r"url\(#", "", page)
    assert set(re.findall(r"https?://[^\s'\"<]*", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "@import" not in page


def test_names_stay_text(page):
    reader = Reader(page)
    assert [tag for tag, _ in reader.tags].count("script") == 2
    assert not [name for _, attributes in reader.tags for name in attributes if name.startswith("on")]
    assert "img" not in [tag for tag, _ in reader.tags]
    data = json.loads(reader.data["script"][0])
    cleaned = [HOSTILE[0], HOSTILE[1], HOSTILE[2].replace("\u2028", " ")]
    assert sorted(data["features"]) == sorted(cleaned)
    assert data["labels"] == [cleaned[i % 3] for i in range(20)]
    assert [output["name"] for output in data["outputs"]] == cleaned[:2]
    block = re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1]
    assert not set("<>&\u2028") & set(block)


def test_only_its_own_script_and_style_may_run(page):
    reader = Reader(page)
    policy = next(attributes["content"] for _, attributes in reader.tags if attributes.get("http-equiv"))
    for text in (reader.data["script"][1], reader.data["style"][0]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert reader.all("style") == []


def test_the_same_report_is_the_same_file(tmp_path):
    first, second = (write_report(tmp_path / name, REG, X[60:], Y[60:, 0]) for name in ("a.html", "b.html"))
    assert first.read_bytes() == second.read_bytes()


def test_a_single_row_and_no_observations(tmp_path):
    text = write_report(tmp_path / "r.html", REG, X[60:61]).read_text(encoding="utf-8")
    Reader(text)
    assert "1 row without observed values" in text


@pytest.mark.parametrize(("constant", "n_dashes"), [([], 0), ([1], 1), ([0, 1], 0)])
def test_outputs_are_compared_by_figures_that_one_of_them_has(tmp_path, constant, n_dashes):
    observed = Y[60:].copy()
    observed[:, constant] = 1.0
    text = write_report(tmp_path / "r.html", BOTH, X[60:], observed).read_text(encoding="utf-8")
    assert text.count("<td>–</td>") == n_dashes
    assert ('<th scope="col">R²</th>' in text) == (len(constant) < 2)
    table = re.search(r'<table class="outputs">.*?</table>', text, flags=re.DOTALL)[0]
    n_names, *n_cells = (len(re.findall("<t[hd]", line)) for line in table.split("<tr>")[1:])
    assert n_cells == [n_names, n_names]


class TestWriting:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"path": "no/such/folder/r.html"}, "does not exist; make it first"),
            ({"path": "/tmp"}, "is a folder; give the name of a file"),
            ({"path": "/proc/r.html"}, "could not be written"),
            ({"level": 95}, "level=95 is not a confidence level"),
        ],
    )
    def test_faults_are_named(self, tmp_path, arguments, message):
        given = {"path": tmp_path / "r.html", "estimator": REG, "X": X[60:]} | arguments
        with pytest.raises(InvalidInputError, match=message):
            write_report(**given)

    def test_what_is_not_fitted_or_has_no_intervals(self, tmp_path):
        with pytest.raises(NotFittedError):
            write_report(tmp_path / "r.html", PNCRegressor(), X)
        network = MLP(width=8)
        reg = SingleNetworkRegressor(interval=None, network=network, regularization=0.1, random_state=0).fit(X[:20], Y[:20, 0])
        with pytest.raises(InvalidInputError, match="interval=None has predictions only"):
            write_report(tmp_path / "r.html", reg, X)
        assert list(tmp_path.iterdir()) == []

    def test_a_full_disk_leaves_the_old_file(self, tmp_path):
        path = write_report(tmp_path / "r.html", REG, X[60:])
        before = path.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(InvalidInputError, match="could not be written: File too large"):
                write_report(path, REG, X[60:], Y[60:, 0])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


def test_what_is_in_it_in_a_few_lines():
    names = {"feature_names": None, "target_names": ["dose"], "row_labels": None}
    lines = in_short(build(REG, checked_rows(REG, X[60:] + 30, Y[60:, 0], 0.95, **names), 0.95))
    assert lines[0].startswith("dose: RMSE")
    assert any(line.startswith("Check: Many of the rows here lie outside") for line in lines)


def test_cautions_come_first_and_progress_goes_to_standard_error(tmp_path, capsys):
    path = write_report(tmp_path / "r.html", REG, X[60:], cautions=["Seen <before>."], verbose=True)
    assert "<strong>Seen &lt;before&gt;.</strong>" in path.read_text(encoding="utf-8")
    assert "asking the model" in capsys.readouterr().err


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return sum(
        w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
        for w, c in zip((0.2126, 0.7152, 0.0722), parts, strict=True)
    )


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_enough_contrast(page, scheme):
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", re.findall(r":root \{(.*?)\}", page, flags=re.DOTALL)[scheme]))
    pairs = [(ink, paper) for ink in ("ink", "muted", "link", "observed", "ok-ink") for paper in ("panel", "paper")]
    pairs += [("ink", "wide"), ("link", "wide"), ("ink", "check-paper"), ("check-ink", "check-paper"), ("check-ink", "panel")]
    for ink, paper in pairs:
        low, high = sorted((luminance(colours[ink]), luminance(colours[paper])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, paper)
