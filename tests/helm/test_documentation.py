"""What docs/kubernetes.md shows are values of the chart, and what it says of Helm is there."""

from __future__ import annotations

import pytest

from services.stack.rundir import ROOT
from tests.helm.rendering import CHART, render
from tests.support.snippets import Snippet, snippets

VALUES = [one for one in snippets() if (one.page, one.language) == ("docs/kubernetes.md", "yaml values.yaml")]


@pytest.mark.parametrize("snippet", VALUES, ids=lambda snippet: f"line-{snippet.line}")
def test_values(needs_helm: None, snippet: Snippet) -> None:
    """Each block renders."""
    assert render(snippet.text).objects


def test_replicas_are_changed_by_values() -> None:
    """The page says what Helm 4 refuses after `kubectl scale`, and what to do."""
    page = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")
    assert ".spec.replicas" in page
    assert "--force-conflicts" in page


def test_values_are_read_in_one_go() -> None:
    """`helm show values` has at most 350 lines."""
    assert len((CHART / "values.yaml").read_text(encoding="utf-8").splitlines()) <= 350
