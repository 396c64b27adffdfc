"""What held on a cluster depends on objects that are kept as files: none of them changes unseen."""

from __future__ import annotations

import pytest
import yaml

from tests.helm.rendering import CHART, render
from tests.helm.snapshots import SCENARIOS, path_of, snapshot


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_snapshot(needs_helm: None, scenario: str) -> None:
    """Policies, budgets, scalers and what pods may do, how they are probed and how they stop are those of the file."""
    assert snapshot(render(CHART / f"{scenario}-values.yaml")) == yaml.safe_load(path_of(scenario).read_text())
