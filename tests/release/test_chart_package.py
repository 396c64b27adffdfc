"""The chart's package, which `make dist` writes without Helm."""

from __future__ import annotations

import tarfile
from pathlib import Path

import yaml

from services.stack import version
from services.stack.chart import CHART
from services.stack.rundir import ROOT
from services.up.dist import pack_chart


def test_same_bytes(tmp_path: Path) -> None:
    """The package is named by the version, and has the same bytes each time it is written."""
    first, second = (pack_chart(ROOT / CHART, Path(tmp_path, name)) for name in _folders(tmp_path))
    assert first.name == f"rewardstack-{version.read(ROOT)}.tgz"
    assert first.read_bytes() == second.read_bytes()


def test_contents(tmp_path: Path) -> None:
    """The package has the chart's templates and files, and nothing that `.helmignore` names."""
    with tarfile.open(pack_chart(ROOT / CHART, tmp_path)) as package:
        package.extractall(tmp_path, filter="data")
    packed = {path.relative_to(tmp_path / "rewardstack") for path in (tmp_path / "rewardstack").rglob("*")}
    chart = {path.relative_to(ROOT / CHART) for path in (ROOT / CHART).rglob("*")}
    assert {path.parts[0] for path in chart - packed} == {"ci", ".helmignore"} and packed < chart
    about = yaml.safe_load((tmp_path / "rewardstack/Chart.yaml").read_text())
    assert about["version"] == about["appVersion"] == version.read(ROOT)


def _folders(parent: Path) -> list[str]:
    for name in ("a", "b"):
        (parent / name).mkdir()
    return ["a", "b"]
