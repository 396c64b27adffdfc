"""The whole stack with keys and a published cache: who gets in, what runs with which rights, where no key is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from services.stack.rundir import ROOT
from services.stack.settings import read_dotenv
from tests.compose.keys import PASSWORD, write_keys
from tests.support.compose import MODELS, PORTS, ComposeStack, running
from tests.support.servers import free_port

FILES = "compose.yaml:compose.keys.yaml:compose.cache.yaml"
KEY = {"Authorization": f"Bearer {PASSWORD}"}
ASKED = {
    "REWARD_PORT": ("/", "/v1/status", "/v1/reward_types", "/v1/score", "/jobs"),
    "JUDGE_PORT": ("/v1/models", "/v1/chat/completions", "/tokenize", "/version"),
    "EMBEDDING_PORT": ("/info", "/embed", "/v1/embeddings"),
}
"""Paths that ask for a key."""
UNLISTED = ("/metricsx", "/v1/load_lora_adapter", "/invocations", "/_stats", "/rerank", "/docs")

pytestmark = [pytest.mark.usefixtures("needs_model_images"), pytest.mark.nightly, pytest.mark.timeout(900)]


def program(image: str) -> str:
    """What an image starts."""
    command = ["docker", "image", "inspect", image, "--format", '{{join .Config.Entrypoint " "}}']
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def stack(needs_model_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeStack]:
    """Every service, with a key for each and a password."""
    run_dir = tmp_path_factory.mktemp("run")
    write_keys(run_dir)
    shipped = read_dotenv(ROOT / ".env")
    settings = {
        "COMPOSE_FILE": FILES,
        "RUN_DIR": str(run_dir),
        "CACHE_PORT": str(free_port()),
        "VLLM_PROGRAM": program(shipped["VLLM_CPU_IMAGE"]),
        "TEI_PROGRAM": program(shipped["TEI_CPU_IMAGE"]),
    }
    with running(MODELS, **settings) as started:
        yield started


def status(stack: ComposeStack, port: str, path: str, headers: dict[str, str] | None = None) -> int:
    """Of the answer to a request from outside."""
    request = urllib.request.Request(stack.url(port) + path, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("samples", ["samples", "judge_samples", "embedding_samples"])
def test_scored_by_every_route(stack: ComposeStack, samples: str, tmp_path: Path) -> None:
    """With the reward server's key alone every route scores; a second run finds the cacheable scores in the cache."""
    said = [score(stack, samples, tmp_path / f"{run}.jsonl") for run in range(2)]
    assert [{row["status"] for row in rows} for rows in said] == [{"ok"}, {"ok"}]
    assert [row["value"] for row in said[0]] == [row["value"] for row in said[1]]
    assert True in {row["cached"] for row in said[1]}


def score(stack: ComposeStack, samples: str, out: Path) -> list[dict[str, object]]:
    """The rows of a shipped file of samples, scored."""
    given = {"REWARD_SERVER_URL": stack.url("REWARD_PORT"), "REWARD_SERVER_API_KEY": PASSWORD}
    command = [sys.executable, "-m", "rewardstack_cli", "score", f"examples/{samples}.jsonl", "-o", str(out)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **given}, capture_output=True, check=True, timeout=300)
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.parametrize("port", ASKED)
def test_key(stack: ComposeStack, port: str) -> None:
    """Without the key, or with a wrong one, every path but /health is 401."""
    for path in ASKED[port]:
        assert (path, status(stack, port, path)) == (path, 401)
        assert (path, status(stack, port, path, {"Authorization": "Bearer wrong"})) == (path, 401)
    assert status(stack, port, ASKED[port][0], KEY) == 200
    assert status(stack, port, "/health") == 200


@pytest.mark.parametrize("port", ASKED)
def test_from_outside(stack: ComposeStack, port: str) -> None:
    """Paths that are not listed are 404, key or not, and counts are told to nobody outside."""
    for path in (*UNLISTED, *(() if port == "REWARD_PORT" else ("/",))):
        assert (path, status(stack, port, path, KEY)) == (path, 404)
    assert [status(stack, port, path, KEY) for path in ("/metrics", "/gateway/status")] == [403, 403]


def test_published(stack: ComposeStack) -> None:
    """The engine publishes the gateway's four ports and the cache's, on loopback, and no other."""
    published = {}
    for service in stack.run("ps", "--services").split():
        for container in stack.containers(service):
            for bindings in container.inspect()["NetworkSettings"]["Ports"].values():
                for binding in bindings or ():
                    published[binding["HostPort"]] = (service, binding["HostIp"])
    wanted = {stack.environment[port]: ("gateway", "127.0.0.1") for port in PORTS}
    assert published == {**wanted, stack.environment["CACHE_PORT"]: ("cache", "127.0.0.1")}


def test_cache_password(stack: ComposeStack) -> None:
    """The published cache answers to its password alone, which allows what a trainer needs and no administration."""
    port = int(stack.environment["CACHE_PORT"])
    with redis.Redis(port=port, password=PASSWORD) as known, redis.Redis(port=port) as unknown:
        assert known.ping() is True
        with pytest.raises(redis.exceptions.NoPermissionError):
            known.config_get("maxmemory")
        with pytest.raises(redis.AuthenticationError):
            unknown.ping()


def test_rights(stack: ComposeStack) -> None:
    """The processes that run are nobody's who may do anything: no root but vLLM's, and no capabilities anywhere."""
    for service in stack.run("ps", "--services").split():
        for container in stack.containers(service):
            shown = container.inspect()
            pid = shown["State"]["Pid"]
            fields = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            assert (service, fields["NoNewPrivs"]) == (service, "1")
            assert (service, shown["HostConfig"]["ReadonlyRootfs"]) == (service, service != "judge")
            if service != "judge":
                assert (service, int(fields["CapEff"], 16), "0" in fields["Uid"].split()) == (service, 0, False)


def test_no_key_is_seen(stack: ComposeStack) -> None:
    """Neither what the engine tells of containers and images, nor their logs, nor a command line has a key."""
    for service in stack.run("ps", "--services").split():
        for container in stack.containers(service):
            assert (service, PASSWORD in json.dumps(container.inspect())) == (service, False)
    assert PASSWORD not in stack.run("logs")
    assert PASSWORD not in stack.run("top")
    history = ["docker", "history", "--no-trunc", read_dotenv(ROOT / ".env")["REWARDSTACK_IMAGE"]]
    assert PASSWORD not in subprocess.run(history, capture_output=True, text=True, check=True).stdout


def test_drained(stack: ComposeStack) -> None:
    """A service that is told to stop ends by itself, before it is killed."""
    for service in ("gateway", "worker", "rules", "cache", "queue"):
        (container,) = stack.containers(service)
        stack.run("stop", service)
        assert (service, container.inspect()["State"]["ExitCode"]) == (service, 0)
