"""Render the chart with Helm, each combination of values once in a process."""

from __future__ import annotations

import functools
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
VERSIONS = ("1.30.0", "1.34.0", "1.37.0")
"""Of Kubernetes; the last one is the newest that the tool has schemas of."""
YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Object = dict[str, Any]
"""An object of Kubernetes, as its YAML has it."""
Objects = Sequence[Object]


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


def render(
    *values: Path | str,
    release: str = "r",
    kubernetes: str = VERSIONS[-1],
    chart: Path = CHART,
    live: Objects = (),
) -> Rendering:
    """Return what Helm renders; with `TOOL`, Kubernetes' schemas accept each object.

    Args:
        values: files of values, or their text; a later one overrides an earlier one.
        release: name of the release.
        kubernetes: its version.
        chart: its folder.
        live: objects that the cluster has already, which belong to the release.

    Raises:
        Refused: Helm or a schema refuses something.
    """
    texts = tuple(one.read_text(encoding="utf-8") if isinstance(one, Path) else one for one in values)
    return _render(texts, release, kubernetes, chart, json.dumps(live))


@functools.cache
def _render(texts: Sequence[str], release: str, kubernetes: str, chart: Path, live: str) -> Rendering:
    # A `helm` binary would ask a cluster to validate.
    validate = ["--validate"] if is_tool() else []
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.yaml") for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        options = [*validate, "--kube-version", kubernetes, *(part for file in files for part in ("-f", str(file)))]
        output = _run("template", release, str(chart), *options, live=json.loads(live))
    objects = [one for one in yaml.load_all(output.stdout, YAML_LOADER) if one]
    return Rendering(release, objects, output.stderr)


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


def _run(*arguments: str, live: Objects = ()) -> Output:
    status, stdout, stderr = _run_tool(arguments, live) if is_tool() else _run_binary(arguments)
    if status != 0:
        raise Refused(stdout + stderr)
    return Output(stdout, stderr)


def _run_binary(arguments: Sequence[str]) -> tuple[int, str, str]:
    done = subprocess.run([helm(), *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr


def _run_tool(arguments: Sequence[str], live: Objects) -> tuple[int, str, str]:
    request = json.dumps({"arguments": arguments, "live": {path_of(one): one for one in live}})
    for _ in range(TOOL_TRIES):
        tool = _tool()
        assert tool.stdin is not None
        assert tool.stdout is not None
        tool.stdin.write(request + "\n")
        tool.stdin.flush()
        status, stdout, stderr = json.loads(tool.stdout.readline())
        if status == 0 or TOOL_FAILURE not in stderr:
            break
    return status, stdout, stderr


@functools.cache
def _tool() -> subprocess.Popen[str]:
    """Return the process that renders for all tests of this one; its end of file is its end."""
    environment = {**os.environ, "PYTHONPATH": str(TOOL_SETTINGS)}
    return subprocess.Popen(
        [str(TOOL), "serve"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def path_of(one: Object) -> str:
    """Return the path of a namespaced object of `default` in the API."""
    version, kind = one["apiVersion"], one["kind"].lower()
    root = "apis" if "/" in version else "api"
    return f"/{root}/{version}/namespaces/default/{kind}s/{one['metadata']['name']}"
