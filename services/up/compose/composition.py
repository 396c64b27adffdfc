"""Resolve the compose files: fill in the settings, and add named judges, the user's files and secrets.

`make up` writes the resolved file and the secrets to the run directory, and starts the services with Compose.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import posixpath
import secrets
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from services.gateway import config as gateway
from services.gateway import tls
from services.judge import model as judge_models
from services.models import machine
from services.models.machine import Gpu
from services.stack import compose_files, ports
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.services_table import SERVICES
from services.stack.settings import RULES_SECRETS, SECRETS, USERS_FILES, Settings
from services.up import model_servers
from services.up.compose.engine import Engine, ask
from services.up.compose.project import Project
from services.up.model_servers import JUDGE, REWARD_MODEL, REWARD_MODEL_PATH, SERVERS, ModelServer
from services.up.named_judges import key_file, keys, templates
from services.up.services import kind_of

STACK_URL = {"judge": "STACK_JUDGE_URL", "embedding": "STACK_EMBEDDING_URL"}
"""Setting with the URL at which containers reach the stack's own model server, by name of the server."""
FILE = "compose.resolved.json"
LABEL = "rewardstack.files"
"""Label with a digest of the mounted files. A changed label makes Compose recreate the container."""
REPLICAS_FLAG = "--data-parallel-size"
"""Flag of vLLM with the number of replicas. On GPUs, replicas share one container."""
WITH_KEYS = "/with_keys.sh"
REWARD_MODEL_URL = f"http://gateway:{SERVICES['judge'].port}{REWARD_MODEL_PATH}"
"""URL of the reward model for containers."""
SANDBOX_URL = "http://sandbox:6000"
"""URL of the sandbox for containers."""
READERS = ("rules", "worker")
"""Services that read the user's files."""
TARGET = "/etc/rewardstack"
"""Folder in containers with the user's files."""
SERVER = "server"
"""Redis user of the stack's own services."""


@dataclass(frozen=True)
class Composition:
    """A resolved compose file.

    Args:
        project: Compose project.
        model: content of the compose file.
        urls: URLs of the services for clients, by the client's environment variable.
        ports: address and number of each published port, by setting.
        chosen: model servers to start.
    """

    project: Project
    model: Mapping[str, Any]
    urls: Mapping[str, str]
    ports: Mapping[str, tuple[str, int]]
    chosen: Sequence[ModelServer]

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        """Services by name."""
        found: dict[str, dict[str, Any]] = self.model["services"]
        return dict(sorted(found.items()))

    def write(self, run: RunDir) -> Path:
        """Write the compose file, and return its path. Secrets and mounted files must exist."""
        for service in self.services.values():
            mounted = [Path(mount["source"]) for mount in service.get("volumes", ()) if mount["type"] == "bind"]
            secrets = [run.secrets / secret["source"] for secret in service.get("secrets", ())]
            # Every user of the engine can read labels, so use the modification time of secrets, not their content.
            versions = [*map(_content, mounted), *(str(secret.stat().st_mtime_ns) for secret in secrets)]
            service["labels"] = {**(service.get("labels") or {}), LABEL: _digest(versions)}
        file = run.path / FILE
        file.write_text(json.dumps(self.model, indent=1).replace("$", "$$"), encoding="utf-8")
        return file


def describe(settings: Settings, run: RunDir, project: Project, chosen: Sequence[ModelServer]) -> Composition:
    """Return the resolved compose file, without writing or starting anything.

    Raises:
        StackError: containers cannot reach a URL, a file that a setting names is missing, there are too few GPUs, or
            Compose cannot read the files.
    """
    gpus = usable_gpus(project.engine)
    judge_gpus = assign_gpus(settings, chosen, gpus)
    values, users = _map_user_files(settings)
    environment = {**_environment(settings, chosen, gpus, judge_gpus), **values, "RUN_DIR": str(run.path)}
    files = [ROOT / name for name, needed in _files(settings, bool(gpus)).items() if needed]
    model = project.config(files, environment)
    services = model["services"]
    for server in model_servers.judges(chosen):
        if server != JUDGE:
            services[server.name] = _named_judge(server, services[JUDGE.name], judge_gpus.get(server.name, ""))
    services["gateway"]["environment"] |= _gateway_variables(settings, chosen)
    for name in READERS:
        _add_files(services[name], users, [*keys(settings)])
    added = {key_file(name): {"file": str(run.secrets / key_file(name))} for name in keys(settings)}
    model["secrets"] = {**model.get("secrets", {}), **added}
    for service in services.values():
        service.pop("profiles", None)
        # With this restart policy, `up --wait` fails as soon as a container exits. `make up` enables restarts later.
        service["restart"] = "no"
    return Composition(project, model, model_servers.urls(settings, chosen), ports.compose_ports(settings), chosen)


def _environment(
    settings: Settings, chosen: Sequence[ModelServer], gpus: list[Gpu], judge_gpus: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that the compose files use, except the paths of the user's files."""
    code = settings["CODE"] == "on" and not (settings["CODE_SANDBOX_URL"] or settings["SANDBOX_FUSION_URL"])
    memory = {name: SERVICES[name].memory for name in ("cache", "queue")}
    return {
        **settings,
        "COMPOSE_PROFILES": ",".join([*(server.name for server in chosen), *(["code"] if code else [])]),
        "STACK_CODE_SANDBOX_URL": SANDBOX_URL if code else "",
        **{server.url_setting: _external_url(server, settings, chosen) for server in (*SERVERS, REWARD_MODEL)},
        "STACK_REWARD_MODEL_URL": REWARD_MODEL_URL if REWARD_MODEL in chosen else "",
        **{STACK_URL[server.name]: settings[STACK_URL[server.name]] if server in chosen else "" for server in SERVERS},
        **{f"{name.upper()}_MEMORY": str(limit.bytes(settings)) for name, limit in memory.items() if limit},
        **dict.fromkeys(SECRETS, ""),  # containers read them from files
        "JUDGE_MODEL": judge_model(settings, gpus),
        "JUDGE_GPUS": judge_gpus.get(JUDGE.name, settings["JUDGE_GPUS"]),
        "REWARD_MODEL_GPU": judge_gpus.get(REWARD_MODEL.name, settings["REWARD_MODEL_GPU"]),
    }


def use_entry_points(composition: Composition) -> None:
    """Complete the commands that start the containers of model servers.

    The container of a model server starts a script, which sets the variables with the keys and then starts the model
    server. This function makes the script start the entry point of the image. If VLLM_PROGRAM or TEI_PROGRAM is set,
    the script already starts the program that this variable names, and nothing is changed.

    Raises:
        StackError: an image is missing.
    """
    for name, service in composition.services.items():
        command, setting = service.get("entrypoint") or (), compose_files.PROGRAM.get(kind_of(name), "")
        if WITH_KEYS not in command or setting in os.environ:
            continue
        docker, image = composition.project.engine.docker, service["image"]
        entry_point = json.loads(ask(docker, "image", "inspect", "--format={{json .Config.Entrypoint}}", image))
        if entry_point:
            before = [part for part in command if "=/run/secrets/" in part]
            service["entrypoint"] = ["sh", WITH_KEYS, *before, *entry_point]


def write_secrets(settings: Settings, run: RunDir) -> None:
    """Write a file for each secret to a directory that only its owner can access.

    An unset secret gets an empty file. TLS files and the keys of external judges are different: if they are not set,
    their files are removed.
    """
    run.secrets.mkdir(mode=0o700, exist_ok=True)
    run.secrets.chmod(0o700)
    contents = _secret_files(settings, run)
    for name, text in contents.items():
        file = run.secrets / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        # The users in the containers must be able to read the file. The directory keeps out other users of this host.
        file.chmod(0o644)
    optional = {*tls.FILES, *(file.name for file in run.secrets.glob(key_file("*")))}
    for name in optional - contents.keys():
        (run.secrets / name).unlink(missing_ok=True)


def _secret_files(settings: Settings, run: RunDir) -> Mapping[str, str]:
    """Return the text of the file of each secret, by file name."""
    values = {**{name: settings[name] for name in SECRETS}, **model_servers.keys(settings)}
    contents = {name.lower(): value for name, value in values.items()} | {"hf_token": os.environ.get("HF_TOKEN", "")}
    for service in ("cache", "queue"):
        own = _generated(f"{service}_server_password", run)
        url = f"redis://{SERVER}:{own}@{service}:{SERVICES[service].port}/0"
        contents |= {f"{service}_server_password": own, f"reward_{service}_url": url}
    if not settings["CODE_SANDBOX_URL"] and not settings["CODE_SANDBOX_API_KEY"]:
        contents |= {"code_sandbox_api_key": _generated("code_sandbox_api_key", run)}
    judge_keys = {key_file(name): key for name, key in keys(settings).items()}
    return {**contents, **judge_keys, **tls.contents(settings)}


def _generated(name: str, run: RunDir) -> str:
    """Return a generated password or key, which stays the same until its file is removed."""
    file = run.secrets / name
    return (file.read_text(encoding="utf-8") if file.is_file() else "") or secrets.token_hex(32)


def unused_gpus(engine: Engine) -> str:
    """Return the reason why the GPUs of this machine are not used; empty if they are used or do not exist."""
    is_unused = bool(machine.gpus()) and not engine.gpus
    return "Docker has no nvidia runtime (NVIDIA Container Toolkit); CPUs are used" if is_unused else ""


def usable_gpus(engine: Engine) -> list[Gpu]:
    """Return the GPUs of this machine that containers can use."""
    return machine.gpus() if engine.gpus else []


def judge_model(settings: Settings, gpus: list[Gpu]) -> str:
    """Return the default judge's model: JUDGE_MODEL, else a default that depends on the memory of these GPUs."""
    fits_large = gpus and judge_models.default(gpus) == judge_models.LARGE
    return settings["JUDGE_MODEL"] or settings["JUDGE_GPU_MODEL" if fits_large else "JUDGE_CPU_MODEL"]


def assign_gpus(settings: Settings, chosen: Sequence[ModelServer], gpus: Sequence[Gpu]) -> dict[str, str]:
    """Return the GPUs of each judge and of the reward model, by service, as in JUDGE_GPUS (`all`, or `0,1`).

    The default judge gets the GPUs that JUDGE_GPUS names, and the reward model gets those that REWARD_MODEL_GPU names.
    The other GPUs, except those that EMBEDDING_GPU names, are free. Named judges, and servers whose setting is `all`,
    get as many free GPUs as they need.

    If the default judge is the only one of these servers, and JUDGE_GPUS is `all`, the default judge gets all GPUs.
    If containers cannot use GPUs, the result is empty.

    Raises:
        StackError: there are too few GPUs.
    """
    judges, size = model_servers.judges(chosen), settings.number("JUDGE_TENSOR_PARALLEL_SIZE")
    servers = [*judges, *([REWARD_MODEL] if REWARD_MODEL in chosen else [])]
    if not gpus or not servers:
        return {}
    if servers == [JUDGE] and settings["JUDGE_GPUS"] == "all":
        machine.require_gpus(gpus, model_servers.replica_count(JUDGE, settings), size)
        return {JUDGE.name: "all"}
    named = {JUDGE.name: settings["JUDGE_GPUS"], REWARD_MODEL.name: settings["REWARD_MODEL_GPU"]}
    fixed = {server.name: gpu for server in servers if (gpu := named.get(server.name, "all")) != "all"}
    taken = ",".join([*fixed.values(), settings["EMBEDDING_GPU"]]).split(",")
    free = [gpu for gpu in gpus if gpu.name not in taken]
    needs = {
        judge.name: model_servers.replica_count(judge, settings) * size for judge in judges if judge.name not in fixed
    }
    needs |= {REWARD_MODEL.name: 1} if REWARD_MODEL in servers and REWARD_MODEL.name not in fixed else {}
    machine.require_gpus(free, sum(needs.values()), 1)
    names = (gpu.name for gpu in free)
    return {**fixed, **{name: ",".join(islice(names, count)) for name, count in needs.items()}}


def _files(settings: Settings, gpus: bool) -> dict[str, bool]:
    """Return the compose files in order, and whether each is needed."""
    return {
        "compose.yaml": True,
        "compose.gpu.yaml": gpus,
        "compose.keys.yaml": "HF_TOKEN" in os.environ or any(settings[key] for key in RULES_SECRETS),
        "compose.cache.yaml": "CACHE_PORT" in ports.compose_ports(settings),
        "compose.tls.yaml": settings.tls,
        "compose.monitoring.yaml": settings["MONITORING"] == "on",
        "compose.override.yaml": (ROOT / "compose.override.yaml").is_file(),
    }


def _named_judge(server: ModelServer, default: Mapping[str, Any], gpus: str) -> dict[str, Any]:
    """Return the compose service of a named judge.

    It is a copy of the default judge's service, with the model, the replicas and the GPUs of the named judge.
    """
    service = deepcopy({**default})
    # For a custom image, an override file may have removed the command.
    service["command"] = [server.model, *(service.get("command") or ())[1:]]
    if not gpus:
        return {**service, "scale": server.replicas}
    if REPLICAS_FLAG in service["command"]:
        service["command"][service["command"].index(REPLICAS_FLAG) + 1] = str(server.replicas)
    for device in service["deploy"]["resources"]["reservations"]["devices"]:
        device["device_ids"] = [gpus]
    return service


def _gateway_variables(settings: Settings, chosen: Sequence[ModelServer]) -> dict[str, str]:
    """Return the gateway's variables for keys, named judges and the reward model, whose replicas it finds by DNS."""
    paths = model_servers.paths(chosen)
    servers = {service: [f"{service}:{SERVICES['judge'].port} resolve"] for service in paths.values()}
    return {**gateway.auth_request_uris(settings), **gateway.model_paths(paths, servers, settings)}


def _map_user_files(settings: Settings) -> tuple[dict[str, str], dict[str, Path]]:
    """Map the user's files to paths in containers: reward functions, routes, and prompt templates of judges.

    Returns:
        Two dicts: from setting to its value with paths in the containers, and from path in the containers to path on
            this machine.

    Raises:
        StackError: a file is missing or unreadable; the message names the setting.
    """
    values, files = {}, {}
    for setting in USERS_FILES:
        targets = []
        for number, file in enumerate(settings.files(setting)):
            # Keep the file name, because its suffix matters. Separate folders avoid collisions.
            targets.append(f"{TARGET}/{setting.lower()}-{number}/{file.name}")
            files[targets[-1]] = file
            if setting == "REWARDSTACK_ROUTES":
                folder = posixpath.dirname(targets[-1])
                for name in templates(file):
                    files[posixpath.normpath(posixpath.join(folder, name))] = (file.parent / name).resolve()
        values[setting] = os.pathsep.join(targets)
    return values, files


def _add_files(service: dict[str, Any], files: Mapping[str, Path], judge_keys: Sequence[str]) -> None:
    """Give a service access to the user's files and to the keys of external judges.

    Args:
        service: Compose service to change.
        files: path of each file on this machine, by its path in the container.
        judge_keys: names of the variables with the keys.
    """
    for target, source in files.items():
        mount = {"type": "bind", "source": str(source), "target": target, "read_only": True}
        service.setdefault("volumes", []).append(mount)
    for variable in judge_keys:
        service["environment"][f"{variable}_FILE"] = f"/run/secrets/{key_file(variable)}"
        service.setdefault("secrets", []).append({"source": key_file(variable)})


def _external_url(server: ModelServer, settings: Settings, chosen: Sequence[ModelServer]) -> str:
    """Return the URL of an external model server for containers; empty if there is none.

    Raises:
        StackError: the URL is on this machine's loopback.
    """
    if server in chosen or not model_servers.is_external(server, settings):
        return ""
    for url in settings[server.url_setting].split(","):
        if _is_loopback(urlsplit(url.strip()).hostname or ""):
            raise StackError(
                f"{server.url_setting}: {url.strip()} is on this machine's loopback, which containers cannot reach",
                "name an address of this machine that containers can reach, or set STACK=native",
            )
    return settings[server.url_setting]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _content(path: Path) -> str:
    """Return a digest of a file, or of all files in a folder."""
    files = [file for file in sorted(path.rglob("*")) if "__pycache__" not in file.parts] if path.is_dir() else [path]
    return _digest(f"{file} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files if file.is_file())


def _digest(parts: Any) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
