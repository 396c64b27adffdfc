"""What supervisord and the launcher read of a program is what it was made with."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from supervisor.options import ServerOptions

from services.gateway import config as gateway
from services.judge import engine
from services.judge.engine import Vllm
from services.judge.model import Model
from services.stack import ports, template
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up import model_servers
from services.up.native import stack
from services.up.native.programs import Program
from services.up.native.stack import Runtime, Stack
from services.up.native.supervisor import WATCH
from services.up.native.up import apply
from tests.native.nginx import load

FOUND = Runtime({"nginx": "/usr/sbin/nginx", "redis-server": "/usr/bin/redis-server"})
FLAGS = ["--override-generation-config", '{"top_p": 0.8}', "--note", 'it\'s 100 % "fine" ; # \\']
SECRETS = {
    "REWARD_SERVER_API_KEYS": "sesame-one-of-the-tests",
    "LLM_JUDGE_SERVER_API_KEY": "sesame-two-of-the-tests",
    "LLM_JUDGE_HEADERS": "name: sesame-five",
    "CACHE_PASSWORD": "sesame-three",
    "CACHE_PORT": "6379",
    "REWARD_CACHE_SECRET": "sesame-four",
}


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run directory."""
    made = RunDir(str(tmp_path))
    made.make()
    return made


def described(run: RunDir, **values: object) -> Stack:
    """A stack without model servers."""
    return stack.describe(load(**values), run, FOUND, [], None)


def write(made: Stack, run: RunDir) -> None:
    """What `make up` writes."""
    made.secrets.write()
    template.write(made.files(run), run.path)


def sections(run: RunDir) -> dict[str, Any]:
    """The programs by name, as supervisord reads them."""
    options = ServerOptions()
    options.realize(["-c", str(run.path / "supervisord.conf")])
    found = (process for group in options.process_group_configs for process in group.process_configs)
    return {process.name: process for process in found if process.name != WATCH}


def digests(run: RunDir) -> Mapping[str, str]:
    """What supervisord compares of each program."""
    return {name: program.environment["DIGEST"] for name, program in sections(run).items()}


def test_round_trip(run: RunDir) -> None:
    """Quotes, spaces, braces, per cent signs and comment signs in flags and variables arrive as they were."""
    vllm, settings = Vllm(sys.executable, "0.32.0+cpu"), Settings({**load(), "JUDGE_VLLM_ARGS": shlex.join(FLAGS)})
    command = engine.command(vllm, Model("org/m", "m", is_local=False), [], settings)
    own = {"CUDA_VISIBLE_DEVICES": "0,1", "EMPTY": "", "NOTE": FLAGS[-1]}
    plain = described(run, WORKERS=2)
    write(replace(plain, programs=[*plain.programs, Program("judge-2", command, 20, environment=own)]), run)
    found = sections(run)
    assert sorted(found) == ["cache", "gateway", "judge-2", "queue", "rules", "worker", "worker-2"]
    assert shlex.split(found["judge-2"].command)[1:] == ["-m", "services.up.native.launch", str(run.program("judge-2"))]
    read = json.loads(run.program("judge-2").read_text())
    assert (read["command"], read["environment"]) == (command, own)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"CACHE_MAX_MEMORY": "64mb"}, ["cache"]),
        ({"VERIFY_TIMEOUT": 30}, ["rules", "worker"]),
        ({"REWARD_THREADS": 3}, ["rules"]),
        ({"REWARD_SERVER_API_KEYS": "another-key-of-the-tests"}, ["rules"]),
        ({"LLM_JUDGE_SERVER_API_KEY": "another"}, ["rules", "worker"]),
        ({"LLM_JUDGE_HEADERS": "name: another"}, ["rules", "worker"]),
        ({"CACHE_PASSWORD": "another"}, ["cache"]),
        ({"REWARD_CACHE_SECRET": "another"}, ["rules", "worker"]),
        ({"JUDGE_BALANCING": "affinity"}, []),
        ({"REWARD_PORT": 6543}, []),
        ({"BIND_ADDRESS": "127.0.0.2"}, ["cache", "gateway"]),
    ],
)
def test_a_setting_changes_what_it_concerns(run: RunDir, values: dict[str, object], expected: list[str]) -> None:
    """Only programs that name the setting have another section; the gateway reloads most of its files."""
    write(described(run, **SECRETS), run)
    before = digests(run)
    made = described(run, **{**SECRETS, **values})
    named = {program.name: program.changes(run) for program in made.programs}
    write(made, run)
    assert [name for name, digest in sorted(digests(run).items()) if before[name] != digest] == expected
    assert [
        name
        for name in expected
        if not {*values, "cache.conf", "its command", "REWARD_CACHE_URL"} & {*named[name].split(", ")}
    ] == []


def test_secrets_stand_in_their_files_alone(run: RunDir) -> None:
    """No key is in what supervisord and the launcher read; only Redis' own configuration holds its password."""
    write(described(run, **SECRETS), run)
    files = [path for path in run.path.rglob("*") if path.is_file() and "sesame" in path.read_text()]
    found = {str(path.relative_to(run.path)) for path in files}
    keys = ("llm_judge_server_api_key", "llm_judge_headers", "reward_server_api_keys", "cache_password")
    names = (*keys, "reward_cache_secret")
    assert found == {"cache.conf", *(f"secrets/{name}" for name in names)}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_passwords(run: RunDir) -> None:
    """A port takes a password: the user's or a generated one, which stays; without a port there is neither."""
    assert "user default" not in described(run).configuration["cache.conf"]
    made = described(run, CACHE_PORT=6379, QUEUE_PORT=6380)
    write(made, run)
    assert described(run, CACHE_PORT=6379, QUEUE_PORT=6380).configuration == made.configuration
    passwords = {
        line
        for text in made.configuration.values()
        for line in text.splitlines()
        if re.search("^(requirepass|user) ", line)
    }
    assert len(passwords) == 3
    assert "user default on >sesame-three resetkeys" in described(run, **SECRETS).configuration["cache.conf"]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("0.0.0.0", "0.0.0.0"),
        ("10.0.0.5", "127.0.0.1 10.0.0.5"),
        ("::", "127.0.0.1 ::"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
def test_redis_listens_beside_the_gateway(run: RunDir, address: str, expected: str) -> None:
    """A Redis with a port listens where the gateway does, and on loopback in any case."""
    assert f"\nbind {expected}\n" in described(run, BIND_ADDRESS=address, QUEUE_PORT=6380).configuration["queue.conf"]


def test_prefix(run: RunDir) -> None:
    """A runtime has each program begin with a command of its own, which reads keys where the program runs."""
    prefix = ["/bin/env", "--ignore-environment"]
    runtime = replace(FOUND, wrap=lambda program: replace(program, prefix=prefix, keys={"KEY": run.path / "key"}))
    made = stack.describe(load(), run, runtime, [], None)
    for program in made.programs:
        assert program.description["command"][:3] == [*prefix, "sh"]
        assert program.description["path"] == "/bin"


def test_gateway_before_replicas() -> None:
    """The gateway has a server for each service that is started, and each replica in its list."""
    behind = [Program(name, [], 20, server=f"unix:/run/{name}.sock") for name in ("rules", "judge", "judge-2")]
    listen = dict.fromkeys(ports.GATEWAY, "127.0.0.1:80")
    files = gateway.files(stack.gateway_upstreams(behind, load()), load(), listen)
    assert "server unix:/run/judge.sock max_fails=0" in files["judge-least_conn.conf"]
    assert "server unix:/run/judge-2.sock max_fails=0" in files["judge-least_conn.conf"]
    assert "include judge.conf;" in files["nginx.conf"]
    assert "embedding" not in "".join(files)


@pytest.mark.parametrize("own", ["off", "on"])
def test_gateway_before_other_nodes(run: RunDir, monkeypatch: pytest.MonkeyPatch, own: str) -> None:
    """A folder of replicas opens their service's port, first to the stack's own servers or to nobody."""
    monkeypatch.setattr(engine, "find", lambda python: Vllm(sys.executable, "0.32.0"))
    folders = {"JUDGE_REPLICAS_DIR": "/shared/judges", "EMBEDDING_REPLICAS_DIR": "/shared/embeddings"}
    settings = load(RULES="off", JUDGE=own, EMBEDDING="off", JUDGE_MODEL=run.path, **folders)
    chosen = model_servers.choose(settings, (), [model_servers.JUDGE, model_servers.EMBEDDING]).chosen
    made = stack.describe(settings, run, FOUND, chosen, None)
    assert [*made.ports] == ["JUDGE_PORT", "EMBEDDING_PORT"] and "REWARD_SERVER_URL" not in made.urls
    listed = {
        "judge": f"unix:{run.socket('judge')}" if own == "on" else gateway.NO_SERVER,
        "embedding": gateway.NO_SERVER,
    }
    discovery = json.loads(made.watch.environment["discovery"])
    for followed, (service, server) in zip(discovery, listed.items(), strict=True):
        assert followed["folder"] == f"/shared/{service}s" and followed["own"] == [server] * (
            server != gateway.NO_SERVER
        )
        assert f"server {server} max_fails=0" in made.gateway[str(followed["file"])]
        assert "server ${SERVER} max_fails=0" in str(followed["text"])


def test_interrupted_while_it_restarts(run: RunDir) -> None:
    """A service that an interrupted `make up` was to restart has not been healthy since; the others have."""
    made = described(run)
    run.save(replace(made.to_state(1), healthy=["rules", "worker"]))

    def interrupted(name: str, healthy: list[str]) -> None:
        raise KeyboardInterrupt

    supervisor = SimpleNamespace(states=lambda: ["rules"], reread=lambda: ([], ["rules"], []), remove=interrupted)
    with pytest.raises(KeyboardInterrupt):
        apply(supervisor, run, made, {})  # type: ignore[arg-type]
    assert run.load() == replace(made.to_state(1), healthy=["worker"])
