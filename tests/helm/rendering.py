"""Render the chart with Helm, each combination of values once in a test run."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from services.stack.rundir import ROOT

CHART = ROOT / "helm/rewardstack"
TOOL = ROOT.parent / "shared/tools/helm/helm"
"""Helm's SDK, with an API server of its own, where there is no `helm` binary."""
TOOL_SETTINGS = Path(__file__).parent / "tool_settings"
TOOL_TRIES = 3
TOOL_FAILURE = "connection reset by peer"
"""What Helm now and then reports of the tool's API server on a busy machine.

The tool alone is tried again: a `helm` binary renders without a server, and the chart cannot cause this error.
"""
SECONDS = 120.0
VERSIONS = ("1.32.0", "1.34.0", "1.37.0")
"""Of Kubernetes; the last one is the newest that the tool has schemas of."""
OUTPUTS: Path | None = None
"""The folder of this test run in which its processes share what Helm rendered; a fixture sets it."""
YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Object = dict[str, Any]
"""An object of Kubernetes, as its YAML has it."""


def helm() -> str:
    """Return the path of Helm; empty if there is none."""
    return shutil.which("helm") or (str(TOOL) if os.access(TOOL, os.X_OK) else "")


def is_tool() -> bool:
    """Return whether Helm is `TOOL`, which validates objects and prints notes without a cluster."""
    return helm() == str(TOOL)


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
    """Helm or a schema refuses the values; has the messages."""


class Output(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


def render(*values: Path | str, release: str = "r", kubernetes: str = VERSIONS[-1], chart: Path = CHART) -> Rendering:
    """Return what Helm renders; with `TOOL`, Kubernetes' schemas accept each object.

    Args:
        values: files of values, or their text; a later one overrides an earlier one.
        release: name of the release.
        kubernetes: its version.
        chart: its folder.

    Raises:
        Refused: Helm or a schema refuses something.
    """
    texts = tuple(one.read_text(encoding="utf-8") if isinstance(one, Path) else one for one in values)
    return _render(texts, release, kubernetes, chart)


@functools.cache
def _render(texts: Sequence[str], release: str, kubernetes: str, chart: Path) -> Rendering:
    key = hashlib.sha256(json.dumps([texts, release, kubernetes, str(chart)]).encode()).hexdigest()
    assert OUTPUTS is not None
    stored = OUTPUTS / f"helm-{key}.json"
    with stored.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be rendering the same
        if not stored.exists():
            stored.write_text(json.dumps(_template(texts, release, kubernetes, chart)), encoding="utf-8")
    output = Output(*json.loads(stored.read_text(encoding="utf-8")))
    objects = [one for one in yaml.load_all(output.stdout, YAML_LOADER) if one]
    return Rendering(release, objects, output.stderr)


def _template(texts: Sequence[str], release: str, kubernetes: str, chart: Path) -> Output:
    # A `helm` binary would ask a cluster to validate.
    validate = ["--validate"] if is_tool() else []
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.yaml") for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        options = [*validate, "--kube-version", kubernetes, *(part for file in files for part in ("-f", str(file)))]
        return _run("template", release, str(chart), *options)


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
    """Lint the chart.

    Raises:
        Refused: Helm reports an error.
    """
    _run("lint", str(CHART))


def _run(*arguments: str) -> Output:
    tool = is_tool()
    environment = {**os.environ, **({"PYTHONPATH": str(TOOL_SETTINGS)} if tool else {})}
    for _ in range(TOOL_TRIES if tool else 1):
        done = subprocess.run(
            [helm(), *arguments], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode == 0:
            return Output(done.stdout, done.stderr)
        if TOOL_FAILURE not in done.stderr:
            break
    raise Refused(done.stdout + done.stderr)
