"""SkyRL's own environments, by whatever of them is installed here."""

from __future__ import annotations

import skyrl_gym

from tests.trainers.conftest import Report


def test_there(report: Report) -> None:
    """It is there."""
    assert skyrl_gym
    report(0, "imported")
