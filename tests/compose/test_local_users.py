"""Other users of the host, who reach every container at its address, get no answer without a password or key."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest
import redis

from tests.support.compose import ComposeStack, Container, running

REDIS = ("cache", "queue")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
PATHS = {
    "/health": "200",
    "/ready": "200",
    "/": "401",
    "/v1/score": "401",
    "/v1/reward_types": "401",
    "/metrics": "401",
}
"""Status of the sandbox's answer to each path without a key."""
PROGRAM = "```python\nprint(2 * int(input()))\n```"
ASK = 'exec 3<>"/dev/tcp/$1/$2" && printf "%b" "$3" >&3 && head --lines=1 <&3'

pytestmark = [pytest.mark.usefixtures("needs_engine"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def stack(needs_engine: None) -> Iterator[ComposeStack]:
    """Cache and queue."""
    made = ComposeStack(())
    try:
        made.run("up", "--detach", "--wait", *REDIS)
        yield made
    finally:
        made.stop()


def address(container: Container) -> str:
    """Return the address of a container in one of its networks."""
    return str(next(iter(container.inspect()["NetworkSettings"]["Networks"].values()))["IPAddress"])


def answer(host: str, port: int, request: str) -> str:
    """Return the first line of the answer to another user's request."""
    user = NOBODY if os.geteuid() == 0 else ()
    command = [*user, "bash", "-c", ASK, "bash", host, str(port), request]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


@pytest.mark.parametrize("service", REDIS)
def test_redis(stack: ComposeStack, service: str) -> None:
    """Cache and queue answer another user with NOAUTH, and the stack's own services with their password."""
    [container] = stack.containers(service)
    host = address(container)
    for request in ("KEYS *", "PING", "CONFIG GET maxmemory", "FLUSHALL", "ACL LIST"):
        assert answer(host, 6379, f"{request}\\r\\n") == "-NOAUTH Authentication required."
    with redis.Redis.from_url(stack.secret(f"reward_{service}_url").replace(f"@{service}:", f"@{host}:")) as own:
        assert own.ping() is True


@pytest.mark.parametrize("service", REDIS)
def test_password_is_hidden(stack: ComposeStack, service: str) -> None:
    """Neither `docker inspect` nor a command line nor the log has the password."""
    password = stack.secret(f"{service}_server_password")
    [container] = stack.containers(service)
    shown = [str(container.inspect()), stack.run("top", service), stack.run("logs", service)]
    assert [password in text for text in shown] == [False] * 3


@pytest.mark.parametrize("service", REDIS)
def test_redis_cli(stack: ComposeStack, service: str) -> None:
    """In a container `redis-cli` needs no password, as the backup of the queue uses it."""
    assert stack.run("exec", "-T", service, "redis-cli", "ping").strip() == "PONG"
    assert "role:master" in stack.run("exec", "-T", service, "redis-cli", "info", "replication")


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_sandbox(needs_engine: None) -> None:
    """The sandbox answers another user with 401, except for its health, and runs programs of the reward server."""
    with running(("code",), STACK_CODE_SANDBOX_URL="http://sandbox:6000") as stack:
        [container] = stack.containers("sandbox")
        host = address(container)
        statuses = {path: answer(host, 6000, f"GET {path} HTTP/1.0\\r\\n\\r\\n").split()[1] for path in PATHS}
        assert statuses == PATHS
        test = {"input": "3\n", "output": "6\n"}
        item = {"data_source": "code", "solution_str": PROGRAM, "ground_truth": json.dumps([test])}
        request = urllib.request.Request(
            stack.url("REWARD_PORT") + "/v1/score",
            json.dumps({"items": [item]}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as reply:
            [score] = json.load(reply)["scores"]
        assert (score["status"], score["value"]) == ("ok", 1.0)
        assert stack.secret("code_sandbox_api_key") not in str(container.inspect())
