"""Generate parts of the compose files and of the container launchers from the tables of services and settings."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterable, Mapping

from services.stack.services_table import DRAIN_TIMEOUT, SERVICES, Memory, Option, Service
from services.stack.settings_table import TABLE, read_by, settings_in

CONFIG = {
    **dict.fromkeys(("cache", "queue"), "/etc/redis.conf"),
    **dict.fromkeys(("judge", "reward-model"), "/etc/vllm.yaml"),
}
"""Path of the configuration file in a container, by service."""
ENTRY_POINT = {"judge": ("vllm", "serve"), "reward-model": ("vllm", "serve"), "embedding": ("text-embeddings-router",)}
"""Entry points of the model servers' images. The command of the container omits them."""
PROGRAM = {"judge": "VLLM_PROGRAM", "reward-model": "VLLM_PROGRAM", "embedding": "TEI_PROGRAM"}
"""Settings that override the entry points."""
MODEL = {"reward-model": "${REWARD_MODEL_ID}"}
"""Model in the command of each service that has no default model."""
ARGUMENTS = {"gateway": ("-p", "/tmp/gateway"), "embedding": ("--hostname", "0.0.0.0", "--port", "8080")}
"""Arguments that services have only in containers."""
REPLICAS = ("--data-parallel-size", "${JUDGE_REPLICAS}")
"""Flag that makes one container run all replicas of the judge. It is used on GPUs, because Compose cannot assign
different GPUs to the containers of one service."""
FOLDER = "/run/secrets"
PLAIN = re.compile(r"[A-Za-z/][\w./-]*|-[A-Za-z]+")
"""Matches a word that needs no quotes in a YAML flow sequence."""
CONDITION = {"": "", "gpu": '[ -z "$gpu" ] || ', "cpu": '[ -n "$gpu" ] || '}
OVERRIDDEN = frozenset(
    {"REWARD_PORT", "LLM_JUDGE_SERVER_URL", "EMBEDDING_SERVER_URL", "REWARD_MODEL_SERVER_URL", "CODE_SANDBOX_URL"}
)
"""Settings whose values the compose files set themselves, because addresses differ in the network of the containers."""
WIDTH = 110
LAUNCHERS = ("services/judge/run_vllm_docker.sh", "services/embedding/run_tei_docker.sh")


def parts() -> Mapping[str, Iterable[str]]:
    """Return the lines of each generated part, by its name, such as `service judge` (see `writer`)."""
    services = {f"service {name}": _service(row) for name, row in SERVICES.items()}
    names = ("rules", "worker", "judge", "reward-model", "embedding")
    on_gpus = {f"service {name} gpu": _command(SERVICES[name], "gpu") for name in ("judge", "embedding")}
    files = dict.fromkeys(secret for name in names for secret in _secrets(SERVICES[name]))
    return {
        **services,
        **{f"settings {name}": _variables(SERVICES[name]) for name in ("gateway", "judge", "reward-model", "rules")},
        **on_gpus,
        **{f"secrets {name}": _reads_secrets(SERVICES[name]) for name in names},
        "secrets touch": [f"#   touch .run/secrets/{name}" for name in files],
        "secrets files": [f'{name}: {{file: "${{RUN_DIR}}/secrets/{name}"}}' for name in files],
        "launcher options": _launcher_options(),
        "launcher container": _launcher_container(SERVICES["judge"]),
        "launcher embedding": _launcher_container(SERVICES["embedding"]),
    }


def _variables(service: Service) -> list[str]:
    """Return the variables of a service as lines of a compose file: its settings, and variables with fixed values."""
    settings = read_by(service.name)
    names = (
        name
        for name in settings_in(".env")
        if name in settings and not settings[name].secret and name not in OVERRIDDEN
    )
    fixed = {**service.environment, **service.cpu_environment}
    return [*(f"{name}: ${{{name}}}" for name in names), *(f'{name}: "{value}"' for name, value in fixed.items())]


def _service(service: Service) -> list[str]:
    lines = [
        *_command(service, "cpu"),
        f"stop_signal: SIG{service.stop_signal}",
        f"stop_grace_period: ${{{DRAIN_TIMEOUT}}}s{service.stop_margin}000ms",
        "healthcheck:",
        f"  test: {_flow(['CMD', 'sh', '/health.sh', *_probe(service)])}",
        f"  start_period: ${{{service.startup_timeout}}}s",
    ]
    return [*lines, f"mem_limit: {_memory(service.name, service.memory)}"] if service.memory else lines


def _command(service: Service, device: str) -> list[str]:
    prefix = service.name.upper()
    model = f"${{{prefix}_MODEL:-${{{prefix}_{device.upper()}_MODEL}}}}"
    filled = {"{model}": MODEL.get(service.name, model), "{config}": CONFIG.get(service.name, "")}
    words = [filled.get(word, word) for word in service.command[len(ENTRY_POINT.get(service.name, ())) :]]
    words += ARGUMENTS.get(service.name, ())
    words += (_optional(option) for option in service.options if option.device in ("", device))
    words += REPLICAS if (service.name, device) == ("judge", "gpu") else ()
    words += [f"${{{service.more_options}}}"] if service.more_options else []
    return _folded("command", " ".join(words))


def _optional(option: Option) -> str:
    return f"${{{option.setting}:+{option.flag} ${{{option.setting}}}}}"


def _probe(service: Service) -> Iterable[str]:
    """Return the command that checks the service's health inside the container."""
    if service.probe.command:
        return service.probe.command
    port = service.port or SERVICES["rules"].port  # the gateway has several ports: probe its reward port
    return ("curl", "--noproxy", "*", "-fsS", f"http://127.0.0.1:{port}{service.probe.ready}")


def _memory(service: str, memory: Memory) -> str:
    """Return a reference to the variable with a container's memory limit.

    If the limit is a multiple of a setting, `make up` computes it, because Compose cannot multiply.
    """
    name = memory.setting if memory.factor == 1 else f"{service.upper()}_MEMORY"
    row = settings_in("compose").get(name)
    return f"${{{name}:-{row.default}}}" if row else f"${{{name}}}"


def _secrets(service: Service) -> dict[str, str]:
    """Return the secrets of a service, as a dict from file names to environment variables."""
    settings = settings_in(".env", "compose")
    return {
        **{name.lower(): f"{name}_FILE" for name in service.secret_files if name in settings},
        **{secret.lower(): variable for variable, secret in service.secret_variables.items()},
    }


def _reads_secrets(service: Service) -> list[str]:
    secrets = _secrets(service)
    if service.secret_variables:
        # A script sets the variables, so that `docker inspect` does not show them.
        assignments = " ".join(f"{variable}={FOLDER}/{name}" for name, variable in secrets.items())
        program = f"${{{PROGRAM[service.name]}:-{shlex.join(ENTRY_POINT[service.name])}}}"
        lines = _folded("entrypoint", f"sh /with_keys.sh {assignments} {program}")
    else:
        lines = ["environment:", *(f"  {variable}: {FOLDER}/{name}" for name, variable in secrets.items())]
    return [*lines, "secrets:", *(f"  - {name}" for name in secrets)]


def _folded(key: str, text: str) -> list[str]:
    """Return a key and its text as YAML lines, folded if the text is long."""
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"{key}: {text}"] if len(lines) == 1 else [f"{key}: >-", *(f"  {line}" for line in lines)]


def _flow(words: Iterable[str]) -> str:
    """Return words as a YAML flow sequence, with $ escaped for Compose."""
    return f"[{', '.join(word if PLAIN.fullmatch(word) else json.dumps(word.replace('$', '$$')) for word in words)}]"


def _launcher_options() -> list[str]:
    """Return the shell lines with which a launcher inserts options before the user's arguments."""
    lines = []
    for option in SERVICES["judge"].options:
        name = option.setting.removeprefix("JUDGE_")
        default = TABLE[name].default if name in settings_in("environment") else f"$(from_dotenv {name})"
        lines += [f': "${{{name}:={default}}}"'] if default else []
        lines.append(f'{CONDITION[option.device]}set -- ${{{name}:+{option.flag} "${name}"}} "$@"')
    return lines


def _launcher_container(service: Service) -> list[str]:
    """Return the shell lines with which a launcher inserts options of `docker run` before the image."""
    environments = {"": service.environment, "cpu": service.cpu_environment}
    return [
        f': "${{{DRAIN_TIMEOUT}:=$(from_dotenv {DRAIN_TIMEOUT})}}"',
        f'set -- --stop-timeout "$(({DRAIN_TIMEOUT} + {service.stop_margin}))" "$@"',
        *(
            f'{CONDITION[device]}set -- --env {name}={value} "$@"'
            for device, variables in environments.items()
            for name, value in variables.items()
        ),
    ]
