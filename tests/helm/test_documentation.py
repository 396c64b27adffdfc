"""The values that docs/kubernetes.md shows are values of the chart."""

from __future__ import annotations

import pytest

from tests.helm.rendering import render
from tests.support.snippets import Snippet, snippets

VALUES = [one for one in snippets() if (one.page, one.language) == ("docs/kubernetes.md", "yaml values.yaml")]


@pytest.mark.parametrize("snippet", VALUES, ids=lambda snippet: f"line-{snippet.line}")
def test_values(needs_helm: None, snippet: Snippet) -> None:
    """Each block renders."""
    assert render(snippet.text).objects
