"""Tests that the links between the pages lead to files and headings that exist."""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.scripts import ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "pretrained/**/*.md")
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```", re.DOTALL)


@cache
def anchors(page: Path) -> set[str]:
    """The names by which a web page of the file links to its headings, as GitHub makes them."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def broken_links(page: Path) -> Iterator[str]:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = Path(os.path.normpath(page.parent / name)) if name else page
        if not linked.exists():
            yield f"{target}: there is no such file"
        elif anchor and linked.suffix == ".md" and anchor not in anchors(linked):
            yield f"{target}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert list(broken_links(page)) == []


def test_every_page_is_in_the_index():
    listed = {
        target.partition("#")[0] for target in LINK.findall((ROOT / "docs/README.md").read_text("utf-8"))
    }
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} <= listed
