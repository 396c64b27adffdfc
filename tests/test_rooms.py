"""The rooms of the client and of the reward server: what may import what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.imports import imported

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"rewardstack": ROOT / "client/rewardstack", "rewardstack_rules": ROOT / "services/rules/rewardstack_rules"}
MODULES = [(package, path) for package, folder in PACKAGES.items() for path in sorted(folder.rglob("*.py"))]

CLIENT: dict[str, set[str]] = {
    "core": set(),
    "cache": {"core"},
    "routing": {"core"},
    "transport": {"core"},
    "ray_judge": {"core", "transport"},
    "pipeline": {"core", "cache", "routing"},
    "scorers": {"core", "cache", "routing", "pipeline", "transport"},
    "trainers": {"core", "api"},
    "cli": {"core", "cache", "routing", "transport", "scorers", "api", "client", "__version__"},
}
"""Of the rooms of `rewardstack`: what they may import of it beside `GROUND`."""
SERVER: dict[str, set[str]] = {
    "mathematics": set(),
    "isolation": set(),
    "golden": set(),
    "metrics": set(),
    "functions": {"mathematics"},
    "scoring": {"functions", "isolation", "mathematics", "metrics"},
    "jobs": {"functions", "metrics", "scoring"},
    "status": {"metrics"},
    "http": {"functions", "golden", "jobs", "metrics", "scoring", "status"},
}
"""Of the rooms of `rewardstack_rules`: what they may import of it beside `GROUND`."""
SHARED: dict[str, set[str]] = {
    "mathematics": set(),
    "isolation": {"errors"},
    "golden": {"core", "errors", "pipeline"},
    "metrics": {"errors", "score"},
    "functions": {"core", "errors"},
    "scoring": {"cache", "client", "core", "errors", "pipeline", "routing", "score", "scorers", "settings"},
    "jobs": {"core", "errors", "score"},
    "status": {"core", "score"},
    "http": {"cache", "core", "errors", "score", "settings"},
    "settings": {"errors", "settings"},
    "run_reward_server": {"core", "errors"},
}
"""Of the rooms and modules of `rewardstack_rules`: what they may import of `rewardstack`."""
GROUND = {
    "rewardstack": {"endpoints", "errors", "score", "settings"},
    "rewardstack_rules": {"__version__", "logs", "process", "settings"},
}
"""The modules at the top of each package on which rooms stand."""
GROUND_MAY = {
    "rewardstack": {
        "endpoints": {"errors"},
        "errors": {"score"},
        "score": set(),
        "settings": {"endpoints", "errors"},
    },
    "rewardstack_rules": {"logs": set(), "process": set(), "settings": {"isolation.config", "jobs.limits"}},
}
"""What those import of their own package: the server's settings fill the records that two rooms define."""
WITHOUT_ROOMS = ("mathematics", "isolation")
"""Rooms of the server that load in processes of their own, which stay small: they import no module of the package."""


def parts(package: str, module: Path) -> list[str]:
    """A module's dotted name within its package, in parts: the room, or the module at the top, comes first."""
    return list(module.relative_to(PACKAGES[package]).with_suffix("").parts)


def taken(package: str, module: Path) -> Iterator[str]:
    """What a module imports of a package, as names within it."""
    return (name.partition(".")[2] for name in imported(module) if name.partition(".")[0] == package)


def cases(*, rooms: bool) -> list[object]:
    """The modules in rooms, or those on which rooms stand."""
    return [
        pytest.param(package, module, id=str(module.relative_to(ROOT)))
        for package, module in MODULES
        if (len(parts(package, module)) > 1 if rooms else parts(package, module)[0] in GROUND[package])
    ]


@pytest.mark.parametrize(("package", "module"), cases(rooms=True))
def test_arrows_between_rooms(package: str, module: Path) -> None:
    """A room imports itself, the rooms that it stands on, and the few modules on which all stand."""
    room = parts(package, module)[0]
    may = {"rewardstack": CLIENT, "rewardstack_rules": SERVER}[package][room]
    ground = set() if room in WITHOUT_ROOMS else GROUND[package]
    for name in taken(package, module):
        assert name.partition(".")[0] in {room} | may | ground, name


@pytest.mark.parametrize(("package", "module"), cases(rooms=False))
def test_the_ground(package: str, module: Path) -> None:
    """The modules on which rooms stand import no room, but for the records that settings fill."""
    may = GROUND_MAY[package][parts(package, module)[0]]
    for name in taken(package, module):
        assert name.startswith(tuple(may)), name


@pytest.mark.parametrize(
    "module", [pytest.param(path, id=str(path.relative_to(ROOT))) for package, path in MODULES if "rules" in package]
)
def test_what_the_server_shares_with_the_client(module: Path) -> None:
    """The reward server imports those rooms of the client's package that are named for it."""
    may = SHARED.get(parts("rewardstack_rules", module)[0], set())
    for name in taken("rewardstack", module):
        assert name.partition(".")[0] in may, name


def test_the_client_knows_no_server() -> None:
    """The client's package imports nothing of the reward server's."""
    for package, module in MODULES:
        assert package != "rewardstack" or not list(taken("rewardstack_rules", module)), module


@pytest.mark.parametrize(("package", "arrows"), [("rewardstack", CLIENT), ("rewardstack_rules", SERVER)])
def test_arrows_go_one_way(package: str, arrows: dict[str, set[str]]) -> None:
    """Every room is listed below those that it imports, so that there is no way round."""
    folders = {path.parent.name for path in PACKAGES[package].glob("*/__init__.py")}
    assert arrows.keys() == folders
    order = list(arrows)
    for room, may in arrows.items():
        assert may & folders <= set(order[: order.index(room)]), room
