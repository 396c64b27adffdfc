"""Read the version of the project from the client; `make settings` writes it to all other files that contain it.

To release another version, change `__version__` in `client/rewardstack/__init__.py` and run `make settings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = "client/rewardstack/__init__.py"
FILES = (
    *("*/pyproject.toml", "services/*/pyproject.toml", "*/rewardstack_*/__init__.py", "services/*/*/__init__.py"),
    *("services/rules/Dockerfile", "apptainer/rules.def"),
    *("helm/rewardstack/Chart.yaml", "helm/rewardstack/ci/*.yaml", "helm/rewardstack/examples/*.yaml"),
    *("README.md", "docs/*.md"),
)
"""Patterns of the files that may contain the version."""
NUMBER = r"\d+\.\d+\.\d+(?:[a-z]+\d+)?"
NAMED = re.compile(
    r"(?P<before>^(?:__version__|version) = \"|^(?:version: |appVersion: \")"  # Python, pyproject.toml, Chart.yaml
    r"|\brewardstack(?:-\w+)?(?:\[\w+\])?(?:==|:)"  # requirements and image tags
    r"|image\.version[= ]\"?"  # labels of the image
    r"|(?:language models\*, |rewardstack )version "  # citation
    r"|^│ reward server .* ok .*│ )"  # what `rewardstack check` prints
    rf"{NUMBER}",
    re.MULTILINE,
)


def read(root: Path) -> str:
    """Return the version of the tree at `root`.

    Raises:
        ValueError: the client's `__version__` is missing, or is not a version such as `1.2.3` or `1.2.3rc1`.
    """
    text = (root / SOURCE).read_text(encoding="utf-8")
    found = re.search(rf'^__version__ = "({NUMBER})"$', text, re.MULTILINE)
    if not found:
        raise ValueError(f'{SOURCE}: no line `__version__ = "X.Y.Z"`')
    return found[1]


def files(root: Path) -> Iterator[Path]:
    """Yield the files in the checkout at `root` that may contain the version."""
    for pattern in FILES:
        yield from root.glob(pattern)


def replace(text: str, version: str) -> str:
    """Return the text with each version of the project replaced."""
    return NAMED.sub(rf"\g<before>{version}", text)
