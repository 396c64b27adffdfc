"""The files of monitoring agree with each other, with the documentation, and with what promtool says of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.monitoring import dashboards
from tests.monitoring.conftest import ALERTS as ALERTS_FILE
from tests.monitoring.conftest import PROMETHEUS, ROOT

CASES = Path(__file__).with_name("alerts.test.yml")
RULES = yaml.safe_load(ALERTS_FILE.read_text())
ALERTS: dict[str, dict[str, Any]] = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "--syntax-only", str(PROMETHEUS)),
        ("check", "rules", str(ALERTS_FILE)),
        ("test", "rules", str(CASES)),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_promtool(needs_prometheus: None, arguments: tuple[str, ...]) -> None:
    """Configuration and alerts are well-formed, and each alert fires when it should and not when it should not."""
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_alert_is_tested(alert: str) -> None:
    """Each alert has a case in which it fires, and one in which it does not."""
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    fires = [bool(case.get("exp_alerts")) for case in cases if case["alertname"] == alert]
    assert {True, False} == set(fires)


@pytest.mark.parametrize("alert", ALERTS)
def test_alert_is_explained(alert: str) -> None:
    """Each alert has a severity, and a section of its name that it points to."""
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
    assert alert in headings
    assert f"docs/runbook.md#{alert.lower()}" == ALERTS[alert]["annotations"]["runbook"]
    assert ALERTS[alert]["labels"]["severity"] in ("critical", "warning")


def test_dashboards_are_written() -> None:
    """The dashboards' files are those that their module writes: `python -m services.monitoring.dashboards`."""
    assert dashboards.files() == {path: path.read_text() for path in dashboards.FOLDER.glob("*.json")}


def test_panels_do_not_overlap() -> None:
    """No two panels of a dashboard stand on the same place, or share a number."""
    for board in dashboards.DASHBOARDS:
        panels = board.json()["panels"]
        cells = [cell for panel in panels for cell in cells_of(panel["gridPos"])]
        assert len(set(cells)) == len(cells) and max(left for left, _ in cells) < 24
        assert len({panel["id"] for panel in panels}) == len(panels)


def cells_of(place: dict[str, int]) -> list[tuple[int, int]]:
    """The squares of the grid that a panel takes."""
    return [
        (left, top)
        for left in range(place["x"], place["x"] + place["w"])
        for top in range(place["y"], place["y"] + place["h"])
    ]
