"""Hooks of the documentation site (`mkdocs.yml`): which pages it has, in which order, with README.md as its index.

The site has the folders of the tree, so the relative links of the pages work on a code host and on the site alike.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LIST = "docs/README.md"
"""The page whose headings and links are the navigation."""
LINK = re.compile(r"\]\(([^)\s#]+)")
LISTED = re.compile(r"^(?:\| |- |\d+\. )\[[^\]]+\]\(([^)#]+\.md)\)")
"""A row of a table, or an item of a list, that begins with a link to a page."""
NAMED_FENCE = re.compile(r"^( *```\w+) ([\w./-]+)$", re.MULTILINE)
"""The first line of a block of code with the name of its file, such as `toml routes.toml`."""


class Indentation(Extension):
    """Read indentation as code hosts do: two spaces continue a list item. Blocks of code need a fence."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Build the parser again: it has read `tab_length` before extensions are loaded."""
        md.tab_length = 2
        md.build_parser()


def on_config(config: MkDocsConfig) -> None:
    """Set the navigation and the indentation."""
    config.markdown_extensions.insert(0, Indentation())
    config.nav = navigation((ROOT / LIST).read_text(encoding="utf-8"))


def navigation(text: str) -> list[dict[str, list[str]]]:
    """Return a section for each second-level heading of the list of pages, with the pages below it in their order."""
    sections: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("## "):
            sections.append((line[3:], []))
        elif sections and (found := LISTED.match(line)):
            sections[-1][1].append(_resolve(LIST, found[1]))
    return [{title: pages} for title, pages in sections]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Return README.md, the pages of `docs/`, and every file of the tree that they link to, directly or not."""
    waiting = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
    found = {*waiting, *config.extra_css}
    while waiting:
        page = waiting.pop()
        if page.endswith(".md"):
            links = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
            linked = {path for link in links if (ROOT / (path := _resolve(page, link))).is_file()}
            waiting += linked - found
            found |= linked
    theme = [file for file in files if file.src_dir != config.docs_dir]
    return Files(
        [*theme, *(File(path, str(ROOT), config.site_dir, config.use_directory_urls) for path in sorted(found))]
    )


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the page with the names of files as titles of their blocks of code."""
    return NAMED_FENCE.sub(r'\1 title="\2"', markdown)


def _resolve(page: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
