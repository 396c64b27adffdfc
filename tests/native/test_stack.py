"""`make up`, `make status`, `make logs` and `make down`, from start to end with the real services."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from services.stack import processes
from tests.native.tree import ROOT, Tree
from tests.support.servers import wait_for_port

pytestmark = pytest.mark.usefixtures("needs_stack")

A_REWARD_FUNCTION = """
from rewardstack_rules import reward_function

@reward_function
def characters(response, reference=None):
    return len(response)
"""
SERVICES = ("cache", "queue", "rules", "worker", "gateway")
SAMPLES = len((ROOT / "examples/samples.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """A running stack that the tests of this module share; each leaves it running."""
    tree = Tree(tmp_path_factory.mktemp("stack") / "tree")
    try:
        result = tree.run("up")
        assert result.returncode == 0, result.stdout
        yield tree
    finally:
        tree.run("down")


def statuses(table: str) -> list[tuple[str, str]]:
    """Status and whether it was cached, of each row of the table of samples."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in table.splitlines() if "│" in line]
    return [(row[3], row[4]) for row in rows if row[3]]


def pids(stack: Tree, services: tuple[str, ...] = SERVICES) -> dict[str, int]:
    """Process id by service, as `make status` shows them."""
    lines = (line.split() for line in stack.run("status").stdout.splitlines())
    return {line[0]: int(line[2]) for line in lines if line and line[0] in services and line[2].isdigit()}


def wait_until_well(stack: Tree, seconds: float = 30.0) -> None:
    """Returns when `make status` finds every service well."""
    deadline = time.monotonic() + seconds
    while (result := stack.run("status")).returncode != 0:
        assert time.monotonic() < deadline, result.stdout
        time.sleep(0.2)


def working_in(tree: Tree) -> list[processes.Process]:
    """The processes whose working directory is in the tree."""
    directories = ((process, processes.directory(process.pid)) for process in processes.processes())
    return [process for process, at in directories if at and at.is_relative_to(tree.path)]


def test_second_up_is_cached(stack: Tree) -> None:
    """A second `make up`, from another shell, leaves the services alone; its table shows every row ok and cached."""
    before = pids(stack)
    again = stack.run("up", PATH=f"{stack.path}:{stack.environment['PATH']}", LANG="C.UTF-8", UP_TIMEOUT="61")
    assert (again.returncode, statuses(again.stdout)) == (0, [("ok", "yes")] * SAMPLES)
    assert pids(stack) == before


def test_first_up(tree: Tree) -> None:
    """The first one shows every row ok and computed, the exports and the logs; `make down` leaves no process."""
    first = tree.run("up")
    assert (first.returncode, statuses(first.stdout)) == (0, [("ok", "no")] * SAMPLES)
    assert f"export REWARD_SERVER_URL=http://localhost:{tree.environment['REWARD_PORT']}" in first.stdout
    assert f"Logs are in {tree.path}/.run/logs" in first.stdout
    assert (tree.path / ".run").stat().st_mode & 0o777 == 0o700
    assert len(working_in(tree)) >= 7
    down = tree.run("down")
    assert down.returncode == 0, down.stdout
    assert working_in(tree) == []
    assert tree.run("down").stdout == "nothing runs here\n"


@pytest.mark.parametrize("service", SERVICES)
def test_killed_service_comes_back(stack: Tree, service: str) -> None:
    """A service whose main process is killed is started again, and the children it left are ended."""
    wait_until_well(stack)
    before = pids(stack)
    os.kill(before[service], signal.SIGKILL)
    time.sleep(0.2)
    wait_until_well(stack)
    after = pids(stack)
    assert after[service] != before[service]
    assert [process for process in processes.processes() if process.group == before[service]] == []
    assert {name: pid for name, pid in after.items() if name != service} == {
        name: pid for name, pid in before.items() if name != service
    }


def test_killed_supervisor(stack: Tree) -> None:
    """`make up` ends what a killed supervisord left behind, and starts anew on the same ports."""
    wait_until_well(stack)
    leader = int((stack.path / ".run/supervisord.pid").read_text())
    orphans = [process for process in working_in(stack) if process.pid != leader]
    os.kill(leader, signal.SIGKILL)
    result = stack.run("up")
    assert result.returncode == 0, result.stdout
    assert not {process.pid for process in orphans} & {process.pid for process in working_in(stack)}


def test_changed_settings(stack: Tree) -> None:
    """`make up` with another setting restarts the services with it; without it they go back."""
    result = stack.run("up", MAX_BODY_BYTES="2048")
    assert "the settings have changed" in result.stdout
    assert post(stack, b" " * 3000) == 413
    assert stack.run("up").returncode == 0
    assert post(stack, b" " * 3000) == 400


def test_changed_code(stack: Tree) -> None:
    """`make up` after a change of the code, or of a user's file, restarts reward server and workers alone."""
    mine = stack.path / "mine.py"
    mine.write_text(A_REWARD_FUNCTION)
    assert (result := stack.run("up", REWARD_FUNCTIONS="mine.py")).returncode == 0, result.stdout
    for changed in (stack.path / "services/rules/rewardstack_rules/__init__.py", mine):
        before = pids(stack)
        changed.write_text(f"{changed.read_text()}\n# changed\n")
        assert stack.run("up", REWARD_FUNCTIONS="mine.py").returncode == 0
        after = pids(stack)
        assert [name for name in SERVICES if after[name] != before[name]] == ["rules", "worker"]


def test_two_at_once(stack: Tree) -> None:
    """A second `make up` or `make down` beside one at work is refused rather than mixed with it."""
    with (stack.path / ".run/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = stack.run("down")
    assert (result.returncode, "another make up or make down is at work here" in result.stdout) == (1, True)


def test_logs(stack: Tree) -> None:
    """`make logs` shows every service's log, or one service's; an unknown name lists the services."""
    every = stack.run("logs").stdout
    assert [name for name in SERVICES if f"{stack.path.name}/.run/logs/{name}.log" not in every] == []
    one = stack.run("logs", "--service", "cache").stdout
    assert "cache.log" in one and "rules.log" not in one
    assert "the services are cache, queue, rules, worker, gateway" in stack.run("logs", "--service", "nginx").stdout


def test_password(tree: Tree) -> None:
    """With API keys and a password for the cache the samples are scored all the same, and no secret is shown."""
    secrets = {"REWARD_SERVER_API_KEYS": "key-one,key-two", "CACHE_PASSWORD": "pass-word"}
    result = tree.run("up", **secrets)
    assert (result.returncode, statuses(result.stdout)) == (0, [("ok", "no")] * SAMPLES)
    assert post(tree, b"{}") == 401
    shown = result.stdout + tree.run("status").stdout + tree.run("logs").stdout
    assert not re.search("key-one|key-two|pass-word", shown)
    assert tree.run("status").returncode == 0


def test_service_that_does_not_come_up(tree: Tree) -> None:
    """A service that fails is named with its last log lines and a remedy, and `make up` fails."""
    broken = tree.path / "broken.py"
    broken.write_text("raise RuntimeError('these functions are broken')\n")
    result = tree.run("up", REWARD_FUNCTIONS=str(broken))
    assert result.returncode == 1
    assert "these functions are broken" in result.stdout
    ended = r"error: (rules|worker): it ends while it is starting(.|\n)*remedy: .*REWARD_FUNCTIONS"
    assert re.search(ended, result.stdout)


def test_service_that_takes_too_long(tree: Tree) -> None:
    """`make up` waits UP_TIMEOUT seconds and no longer."""
    slow = tree.path / "slow.py"
    slow.write_text("import time\ntime.sleep(20)\n")
    result = tree.run("up", REWARD_FUNCTIONS=str(slow), UP_TIMEOUT="2")
    assert result.returncode == 1
    assert "error: rules: not well after 2 s (UP_TIMEOUT)" in result.stdout


def test_interrupted(tree: Tree) -> None:
    """Ctrl-C while `make up` waits says what to do, and `make down` then stops everything."""
    with tree.start("up") as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("==> waiting"))
        process.send_signal(signal.SIGINT)
        shown = line + process.stdout.read()
    assert (process.returncode, "interrupted; make down stops whatever runs" in shown) == (130, True)
    assert tree.run("down").returncode == 0
    assert working_in(tree) == []


def post(stack: Tree, body: bytes) -> int:
    """Status of the answer to a POST to /v1/score."""
    wait_for_port(int(stack.environment["REWARD_PORT"]))
    request = urllib.request.Request(f"{stack.url}/v1/score", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
