"""The documentation site: it builds without a warning, says what the pages say, and needs nothing from the Internet."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from services.stack.rundir import ROOT
from tests.support.table import Table

CODE_HOST = MarkdownIt("commonmark").enable("table")
ELEMENT = re.compile(r"<(h[1-6]|p|ul|ol|li|table|tr|pre|img|blockquote)\b")
ARTICLE = re.compile(r"<article[^>]*>(.*)</article>", re.DOTALL)
LOADED = re.compile(r"<(?:script|img|iframe)[^>]* src=\"?(?:https?:)?//[^>]*|<link[^>]* href=\"?(?:https?:)?//[^>]*")
"""What a browser would load from another server."""


@pytest.fixture(scope="module")
def site(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it; links and anchors that lead nowhere are errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_pages(site: Path, table: Table) -> None:
    """Each page has as many headings, paragraphs, items, rows and blocks of code as on a code host."""
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site)
        if name.name == "404.html":
            continue
        source = ROOT / (name.with_name("README.md") if name.name == "index.html" else name.with_suffix(".md"))
        with table.case(str(name)):
            html = page.read_text(encoding="utf-8")
            [article] = ARTICLE.findall(html)
            assert elements(article) == elements(CODE_HOST.render(source.read_text(encoding="utf-8")))
            assert LOADED.findall(html) == []


def elements(html: str) -> Counter[str]:
    """Return how many elements of each kind there are."""
    return Counter(ELEMENT.findall(html))


def test_navigation(site: Path) -> None:
    """The navigation has the four kinds of pages, and README.md is the first page."""
    html = (site / "index.html").read_text(encoding="utf-8")
    titles = re.findall(r'<span class="md-ellipsis">\s*(.*?)\s*</span>', html.partition("<article")[0])
    kinds = ["Getting started", "How-to guides", "Reference", "Explanation"]
    assert [title for title in titles if title in kinds] == kinds
    assert "<h1" in html and ">rewardstack<" in html
