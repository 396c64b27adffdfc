"""The pods of a rendering as containers of this machine's engine, with what each is given by its manifest.

What an engine cannot show: scheduling, GPUs, a Service's own address (its name leads to all of its pods instead, as a
headless one's does), network policies, and volumes of a cluster (a claim is a folder).
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helm.rendering import Object, Rendering

POLL_SECONDS = 0.5
COMMAND_SECONDS = 600.0
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
SUFFIX = "default.svc.cluster.local"
OPEN = 0o777
"""What kubelet does by `fsGroup`: a pod's user may write to the pod's own volumes."""


class NotReady(Exception):
    """A pod does not become ready; its log."""


@dataclass(frozen=True)
class Pod:
    """One pod, which is one container here.

    Args:
        name: of both.
        spec: of the pod.
        labels: that Services select it by.
    """

    name: str
    spec: Object
    labels: Mapping[str, str]

    @property
    def container(self) -> Object:
        """Its one container."""
        (found,) = self.spec["containers"]
        return dict(found)


def pods(rendering: Rendering) -> Iterator[Pod]:
    """Those that run for ever, each replica of them."""
    for one in rendering.of("Deployment", "StatefulSet"):
        template = one["spec"]["template"]
        for number in range(one["spec"].get("replicas", 1)):
            yield Pod(f"{one['metadata']['name']}-{number}", template["spec"], template["metadata"]["labels"])


@dataclass
class Cluster:
    """A network of this machine's engine with the pods of a rendering in it.

    Args:
        rendering: of the chart.
        folder: for what is mounted.
    """

    rendering: Rendering
    folder: Path
    network: str = field(default_factory=lambda: f"rewardstack-pods-{uuid.uuid4().hex[:8]}")
    running: dict[str, Pod] = field(default_factory=dict)

    def start(self, pod: Pod, *options: str) -> None:
        """Start a pod, with further options of the engine."""
        docker(*self._arguments(pod, "--detach", *options))
        self.running[pod.name] = pod

    def run(self, pod: Pod) -> subprocess.CompletedProcess[str]:
        """Run a pod to its end; what it says."""
        return subprocess.run(
            ["docker", *self._arguments(pod, "--rm")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def wait(self) -> None:
        """Wait until every pod has started, is ready and lives, asked as its manifest says.

        Raises:
            NotReady: one is not in the time that its startup probe gives.
        """
        begun = time.monotonic()
        for pod in self.running.values():
            probe = pod.container["startupProbe"]
            timeout = probe["periodSeconds"] * probe["failureThreshold"]
            while not all(self.answers(pod, pod.container[name]) for name in PROBES):
                if time.monotonic() - begun > timeout or not self.alive(pod):
                    raise NotReady(f"{pod.name}: {docker('logs', '--tail', '40', self.called(pod), check=False)}")
                time.sleep(POLL_SECONDS)

    def answers(self, pod: Pod, probe: Mapping[str, Any]) -> bool:
        """Whether a probe succeeds, from within the pod's own network."""
        if "exec" in probe:
            command = ["docker", "exec", self.called(pod), *probe["exec"]["command"]]
        else:
            ports = {port["name"]: port["containerPort"] for port in pod.container["ports"]}
            asked = probe["httpGet"]
            command = [
                "curl",
                "-fsS",
                "--noproxy",
                "*",
                f"http://{self.address(pod)}:{ports.get(asked['port'], asked['port'])}{asked['path']}",
            ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=probe["timeoutSeconds"], check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def passes(self, pod: Pod, name: str) -> bool:
        """Whether one of its probes succeeds within as many tries as a cluster would make; a busy machine is late."""
        probe = pod.container[name]
        return any(self.answers(pod, probe) for _ in range(probe["failureThreshold"]))

    def address(self, pod: Pod) -> str:
        """Of a pod in the network."""
        return docker(
            "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", self.called(pod)
        )

    def alive(self, pod: Pod) -> bool:
        """Whether its process runs."""
        return docker("inspect", "--format", "{{.State.Running}}", self.called(pod)) == "true"

    def kill(self, name: str) -> None:
        """A pod is gone at once, as one on a machine that is."""
        docker("rm", "--force", self.called(self.running.pop(name)))

    def called(self, pod: Pod) -> str:
        """The name of a pod's container."""
        return f"{self.network}-{pod.name}"

    def _arguments(self, pod: Pod, *how: str) -> list[str]:
        container, own = pod.container, pod.spec.get("securityContext", {})
        confined = container.get("securityContext", {})
        command, arguments = container.get("command", ()), container.get("args", ())
        return [
            "run", *how, "--name", self.called(pod), "--network", self.network, "--hostname", pod.name,
            *(part for name in self._names(pod) for part in ("--network-alias", name)),
            *(["--user", f"{own['runAsUser']}:{own.get('runAsGroup', 0)}"] if "runAsUser" in own else []),
            *(["--read-only"] if confined.get("readOnlyRootFilesystem") else []),
            *(["--security-opt", "no-new-privileges"] if not confined.get("allowPrivilegeEscalation", True) else []),
            *(f"--cap-drop={name}" for name in confined.get("capabilities", {}).get("drop", ())),
            *(f"--cap-add={name}" for name in confined.get("capabilities", {}).get("add", ())),
            "--stop-timeout", str(pod.spec.get("terminationGracePeriodSeconds", 30)),
            *(part for variable in self._environment(container) for part in ("--env", variable)),
            *self._mounts(pod),
            *(["--entrypoint", command[0]] if command else []),
            container["image"], *command[1:], *arguments,
        ]  # fmt: skip

    def _names(self, pod: Pod) -> Iterator[str]:
        for service in self.rendering.of("Service"):
            if service["spec"]["selector"].items() <= pod.labels.items():
                yield service["metadata"]["name"]
                yield f"{service['metadata']['name']}.{SUFFIX}"

    def _environment(self, container: Object) -> Iterator[str]:
        for source in container.get("envFrom", ()):
            for name, text in self._data("ConfigMap", source["configMapRef"]["name"]).items():
                yield f"{name}={text}"
        for variable in container.get("env", ()):
            source = variable.get("valueFrom", {}).get("resourceFieldRef", {}).get("resource")
            named = {"requests.cpu": container.get("resources", {}).get("requests", {}).get("cpu")}
            yield f"{variable['name']}={named[source] if source else variable['value']}"

    def _data(self, kind: str, name: str) -> dict[str, str]:
        (found,) = (one for one in self.rendering.of(kind) if one["metadata"]["name"] == name)
        data = found.get("data", {})
        if kind == "Secret":
            data = {key: base64.b64decode(text).decode() for key, text in data.items()}
        return {**data, **found.get("stringData", {})}

    def _mounts(self, pod: Pod) -> list[str]:
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", ())}
        flags = []
        for mount in pod.container.get("volumeMounts", ()):
            volume = volumes.get(mount["name"], {})
            if volume.get("emptyDir", {}).get("medium") == "Memory":
                flags.append(f"--tmpfs={mount['mountPath']}:size={_bytes(volume['emptyDir']['sizeLimit'])},mode=1777")
                continue
            folder = self._volume(pod, mount["name"], volume) / mount.get("subPath", "")
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(OPEN)
            flags.append(f"--volume={folder}:{mount['mountPath']}{':ro' if mount.get('readOnly') else ''}")
        return flags

    def _volume(self, pod: Pod, name: str, volume: Mapping[str, Any]) -> Path:
        """The folder that is a volume: of a ConfigMap or Secret its files, else what the pod writes."""
        if "configMap" in volume:
            kind, source = "ConfigMap", volume["configMap"]["name"]
        elif "secret" in volume:
            kind, source = "Secret", volume["secret"]["secretName"]
        else:
            return self.folder / pod.name / name
        folder = self.folder / kind / source
        if not folder.exists():
            folder.mkdir(parents=True)
            for file, text in self._data(kind, source).items():
                (folder / file).write_text(text, encoding="utf-8")
        return folder


@contextmanager
def cluster(rendering: Rendering) -> Iterator[Cluster]:
    """The pods of a rendering, ready; all of it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="rewardstack-pods-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(OPEN)
        one = Cluster(rendering, Path(folder))
        docker("network", "create", one.network)
        try:
            for pod in pods(rendering):
                one.start(pod)
            one.wait()
            yield one
        finally:
            for name in [*one.running]:
                one.kill(name)
            docker("network", "rm", one.network)


def docker(*arguments: str, check: bool = True) -> str:
    """What the engine's command says."""
    command: Sequence[str] = ["docker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return (done.stdout + ("" if check else done.stderr)).strip()


def _bytes(quantity: str) -> int:
    """Of a quantity such as 8Gi."""
    return (
        int(quantity.removesuffix("Gi")) * 2**30
        if quantity.endswith("Gi")
        else int(quantity.removesuffix("Mi")) * 2**20
    )
