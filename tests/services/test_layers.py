"""Imports go one way: the ways to run, the rooms of the services, what all of them share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.imports import imported

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "services").rglob("*.py"))
ROOMS = {"gateway", "redis", "models", "judge", "embedding", "monitoring"}
MAY_IMPORT: dict[str, set[str]] = {
    "stack": set(),
    "rules": set(),
    **{room: {"stack"} for room in ROOMS},
    "judge": {"stack", "models"},
    "embedding": {"stack", "models"},
    "up": {"stack", *ROOMS},
}
"""Of the folders of `services/`: those that it may import beside itself. The reward server is a package of its own."""
WAYS = ("native", "compose")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_down(module: Path) -> None:
    """No module imports a folder above its own, and neither way to run imports the other."""
    room, *within = module.relative_to(ROOT / "services").parts
    allowed = {room} | MAY_IMPORT[room]
    barred = tuple(f"up.{way}" for way in WAYS if within[0] in WAYS and way != within[0])
    for name in imported(module):
        package, _, rest = name.partition(".")
        if package == "services":
            assert rest.partition(".")[0] in allowed, name
            assert not rest.startswith(barred), name
