"""What Helm renders of the chart: objects of Kubernetes, as data."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from services.stack.rundir import ROOT

CHART = ROOT / "helm/rewardstack"
TOOL = ROOT.parent / "shared/tools/helm/helm"
"""Helm's engine where no binary can be had."""
SECONDS = 120.0
TRIES = 3
BROKEN_OFF = "connection reset by peer"
"""What Helm says now and then of the server that takes what it renders; it has nothing to do with the chart."""

Object = dict[str, Any]
"""An object of Kubernetes, as its YAML has it."""


def helm() -> str:
    """The program; empty where there is none."""
    return shutil.which("helm") or (str(TOOL) if os.access(TOOL, os.X_OK) else "")


@dataclass(frozen=True)
class Rendering:
    """The objects of a release.

    Args:
        release: its name.
        objects: in the order in which Helm has them, tests included.
        notes: that are printed at the end.
    """

    release: str
    objects: Sequence[Object]
    notes: str

    def of(self, *kinds: str) -> Iterator[Object]:
        """Those of some kinds."""
        return (one for one in self.objects if one["kind"] in kinds)

    def one(self, kind: str, service: str) -> Object:
        """The one of a kind and a service of the release, such as `Deployment` and `rules`.

        Raises:
            KeyError: there is none.
        """
        for found in self.of(kind):
            if found["metadata"]["name"] == f"{self.release}-{service}":
                return found
        raise KeyError(f"{kind} {service}")


class Refused(Exception):
    """Helm takes these values for wrong; its words."""


@functools.cache
def render(*values: Path, release: str = "r", kubernetes: str = "1.34.0", chart: Path = CHART) -> Rendering:
    """What Helm makes of the chart, each object as Kubernetes' own schemas ask for; once of the same files.

    Args:
        values: files of values, of which a later one beats an earlier one.
        release: name of the release.
        kubernetes: version of it.
        chart: its folder.

    Raises:
        Refused: Helm or a schema refuses something.
    """
    files = [part for path in values for part in ("-f", str(path))]
    done = _run("template", release, str(chart), *files, "--validate", "--kube-version", kubernetes)
    return Rendering(release, [one for one in yaml.safe_load_all(done.stdout) if one], done.stderr)


def templates(rendering: Rendering) -> Iterator[tuple[Object, Object]]:
    """Those that have pods, Deployments and StatefulSets, each with the template of them."""
    return ((one, one["spec"]["template"]) for one in rendering.of("Deployment", "StatefulSet"))


def selected(rendering: Rendering, selector: Object) -> list[tuple[Object, Object]]:
    """Those of `templates` whose pods a selector's `matchLabels` fit.

    Args:
        rendering: of the chart.
        selector: of a Service, a policy or a budget.
    """
    wanted = selector["matchLabels"].items()
    return [(one, pod) for one, pod in templates(rendering) if wanted <= pod["metadata"]["labels"].items()]


def lint() -> None:
    """Have Helm look through the chart.

    Raises:
        Refused: it complains of something.
    """
    _run("lint", str(CHART))


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    for _ in range(TRIES):
        done = subprocess.run([helm(), *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode == 0 or BROKEN_OFF not in done.stderr:
            break
    if done.returncode != 0:
        raise Refused(done.stdout + done.stderr)
    return done
