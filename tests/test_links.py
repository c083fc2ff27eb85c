"""Links of the documents: files and anchors that are there, addresses that are addresses."""

import re
import unicodedata
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/*.md")])


def without_blocks(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def without_code(text):
    """The words alone: what stands in code is no link."""
    return re.sub(r"`[^`\n]*`", "", without_blocks(text))


def slug(heading):
    """The anchor that Python-Markdown makes of a heading."""
    plain = re.sub(r"\\(.)", r"\1", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)).replace("`", "")
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def anchors(text):
    return {slug(heading) for heading in re.findall(r"^#{1,6} +(.+?) *$", without_blocks(text), flags=re.MULTILINE)}


def links(text):
    """Targets of links and pictures: [words](target) and <img src="target">."""
    words = without_code(text)
    return re.findall(r"\]\(\s*<?([^)\s>]+)", words) + re.findall(r"(?:src|href)=\"([^\"]+)\"", words)


def fault(document, target):
    """What is wrong with a link, in a few words; nothing where it leads somewhere."""
    parts = urlsplit(target)
    if parts.scheme:
        is_address = parts.scheme in ("http", "https", "mailto") and bool(parts.netloc or parts.path)
        return "" if is_address and " " not in target else "is no address"
    file = (document.parent / parts.path).resolve() if parts.path else document
    if not file.exists():
        return "does not exist"
    if parts.fragment and parts.fragment not in anchors(file.read_text()):
        return "has no such heading"
    return ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    found = {target: fault(document, target) for target in links(document.read_text())}
    assert {target: wrong for target, wrong in found.items() if wrong} == {}


def test_links_of_the_site_stay_in_the_site():
    """What is published is docs/: a link out of it would work in a checkout and nowhere else."""
    site = ROOT / "docs"
    for document in site.glob("**/*.md"):
        for target in links(document.read_text()):
            path = urlsplit(target).path
            if path and not urlsplit(target).scheme:
                assert (document.parent / path).resolve().is_relative_to(site), f"{document.name}: {target}"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[x](missing.md)", "does not exist"),
        ("[x](#nowhere)", "has no such heading"),
        ("[x](other.md#nowhere)", "has no such heading"),
        ("![x](missing.png)", "does not exist"),
        ("[x](https://)", "is no address"),
        ("[x](other.md#what-is-lambda)", ""),
        ("[x](#here)", ""),
        ("[x](https://example.org/a#b)", ""),
    ],
)
def test_the_checker_sees_what_is_wrong(text, wrong, tmp_path):
    document = tmp_path / "page.md"
    document.write_text(f"# Here\n{text}\n")
    (tmp_path / "other.md").write_text("## What is `lambda`?\n")
    (target,) = links(document.read_text())
    assert fault(document, target) == wrong


def test_code_is_no_link():
    assert links("`a[0](b)`\n```\n[x](y)\n```\n") == []
