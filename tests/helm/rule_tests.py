"""Run `promtool test rules` on the rules of releases."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.helm.rendering import Object, Rendering


def groups(rendering: Rendering) -> list[Object]:
    """The groups of a release's rules."""
    (rules,) = rendering.of("PrometheusRule")
    return list(rules["spec"]["groups"])


def check_rules(folder: Path, releases: Sequence[Rendering], interval: str, cases: Sequence[Object]) -> None:
    """Assert that cases hold for the rules of releases.

    Args:
        folder: for files.
        releases: each with rules.
        interval: between two evaluations of the rules, such as `15s`.
        cases: as promtool takes them in `tests`.
    """
    names = [f"{rendering.release}.yml" for rendering in releases]
    for name, rendering in zip(names, releases, strict=True):
        (folder / name).write_text(json.dumps({"groups": groups(rendering)}), encoding="utf-8")
    test = {"rule_files": names, "evaluation_interval": interval, "tests": cases}
    (folder / "test.yml").write_text(json.dumps(test), encoding="utf-8")
    command = ["promtool", "test", "rules", "test.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[:4000]
