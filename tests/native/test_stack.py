"""`make up`, `make status`, `make logs` and `make down`, from start to end with the real services."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from services.stack import processes
from services.stack.errors import COMMAND
from services.stack.processes import Process
from services.stack.rundir import RunDir
from services.up.native.supervisor import Supervisor
from tests.native.test_jobs import submit, write_rows
from tests.native.tree import ROOT, Tree
from tests.support.servers import free_port
from tests.support.waiting import SECONDS, eventually

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
    """A running stack that the tests of this module share; each leaves one running, with settings of its own."""
    tree = Tree(tmp_path_factory.mktemp("stack") / "tree")
    tree.environment |= {"WORKERS": "2", "REWARD_JOB_CHUNK_SIZE": "7"}
    try:
        first = tree.run("up")
        assert (first.returncode, statuses(first.stdout)) == (0, [("ok", "no")] * SAMPLES), first.stdout
        assert f"export REWARD_SERVER_URL={tree.url.replace('127.0.0.1', 'localhost')}\n" in first.stdout
        assert f"export REWARD_CACHE_URL=unix://{tree.path}/.run/cache.sock\n" in first.stdout
        assert f"make logs, in {tree.path}/.run/logs" in first.stdout
        assert (tree.path / ".run").stat().st_mode & 0o777 == 0o700
        yield tree
    finally:
        tree.run("down")


def up(stack: Tree, **settings: str) -> str:
    """What a `make up` says that succeeds."""
    result = stack.run("up", **settings)
    assert result.returncode == 0, result.stdout
    return result.stdout


def statuses(table: str) -> list[tuple[str, str]]:
    """Status and whether it was cached, of each row of the table of samples, which says that where there is a cache."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in table.splitlines() if "│" in line]
    return [(row[3], row[4] if len(row) > 5 else "no") for row in rows if row[3]]


def pids(stack: Tree, services: tuple[str, ...] = SERVICES) -> dict[str, int]:
    """Return the process id of each service that has a process."""
    states = Supervisor(RunDir(str(stack.path / ".run"))).states()
    return {state.name: state.pid for state in states if state.name in services and state.pid}


def wait_until_healthy(stack: Tree, seconds: float = SECONDS) -> None:
    """Returns when `make status` finds every service healthy."""
    eventually(lambda: stack.run("status").returncode == 0, lambda: stack.run("status").stdout, seconds)


def wait_for_another(stack: Tree, service: str, process: int, seconds: float = SECONDS) -> None:
    """Returns when a service that ran as `process` runs as another one, and every service is healthy."""
    eventually(lambda: process not in pids(stack, (service,)).values(), seconds=seconds)
    wait_until_healthy(stack, seconds)


def working_in(tree: Tree) -> list[Process]:
    """The processes whose working directory is in the tree."""
    directories = ((process, process.directory) for process in processes.all_processes())
    return [process for process, at in directories if at and at.is_relative_to(tree.path)]


def test_second_up_is_cached(stack: Tree) -> None:
    """A second `make up`, from another shell, leaves the services alone; its table shows every row ok and cached."""
    up(stack)
    before = pids(stack)
    again = up(stack, PATH=f"{stack.path}:{stack.environment['PATH']}", LANG="C.UTF-8", UP_TIMEOUT="61")
    assert statuses(again) == [("ok", "yes")] * SAMPLES
    assert pids(stack) == before


def test_status(stack: Tree) -> None:
    """`make status` has a row for the queue and for each worker, all of them healthy, with their processes."""
    up(stack)
    shown = stack.run("status")
    assert shown.returncode == 0, shown.stdout
    rows = [line.split() for line in shown.stdout.splitlines()]
    names = ["cache", "queue", "rules", "worker", "worker-2", "gateway"]
    assert [row[0] for row in rows if row[-1] == "ok"] == names
    assert {row[0]: int(row[2]) for row in rows if row[-1] == "ok"} == pids(stack, tuple(names))


def test_a_job_comes_back(stack: Tree, tmp_path: Path) -> None:
    """A file that is submitted to the stack comes back complete, in order, each row with its score."""
    up(stack)
    expected = write_rows(tmp_path / "in.jsonl")
    submit(stack, str(tmp_path / "in.jsonl"), "--wait", "-o", str(tmp_path / "out.jsonl"))
    scored = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["status"], row["value"]) for row in scored] == [("ok", value) for value in expected]


@pytest.mark.parametrize(
    "service", [pytest.param(name, marks=() if name == "rules" else pytest.mark.nightly) for name in SERVICES]
)
def test_killed_service_comes_back(stack: Tree, service: str) -> None:
    """A service whose main process is killed is started again, and the children it left are ended."""
    wait_until_healthy(stack)
    before, session = pids(stack), int((stack.path / ".run/supervisord.pid").read_text())
    os.kill(before[service], signal.SIGKILL)
    wait_for_another(stack, service, before[service])
    assert processes.members(session, before[service]) == []
    assert before.items() - pids(stack).items() == {(service, before[service])}


@pytest.mark.nightly
def test_killed_supervisor(stack: Tree) -> None:
    """`make up` ends what a killed supervisord left behind, and starts again on the same ports."""
    wait_until_healthy(stack)
    leader = int((stack.path / ".run/supervisord.pid").read_text())
    orphans = [process for process in working_in(stack) if process.pid != leader]
    os.kill(leader, signal.SIGKILL)
    result = stack.run("up")
    assert result.returncode == 0, result.stdout
    assert not {process.pid for process in orphans} & {process.pid for process in working_in(stack)}


def test_changed_setting(stack: Tree) -> None:
    """It restarts the programs that it concerns, which are named with it; the others keep their processes."""
    up(stack)
    before = pids(stack)
    said = up(stack, CACHE_MAX_MEMORY="64mb", JUDGE_TIMEOUT="500")
    after = pids(stack)
    assert [name for name in SERVICES if after[name] != before[name]] == ["cache"]
    assert "restarting cache (changed: its command) (" in said


def test_changed_port(stack: Tree) -> None:
    """The gateway listens on another port while nginx keeps its process."""
    up(stack)
    before, port = pids(stack), str(free_port())
    up(stack, REWARD_PORT=port)
    assert pids(stack) == before
    assert post(port, b" ") == 400
    with pytest.raises(urllib.error.URLError, match="refused"):
        post(stack.environment["REWARD_PORT"], b" ")


@pytest.mark.nightly
def test_changed_gateway(stack: Tree) -> None:
    """A setting of the gateway, its port too, takes hold while nginx keeps its process."""
    up(stack, JUDGE_TIMEOUT="500")
    before, port = pids(stack), str(free_port())
    up(stack, REWARD_PORT=port, MAX_BODY_BYTES="2048")
    assert pids(stack)["gateway"] == before["gateway"]
    assert post(port, b" " * 3000) == 413
    up(stack)
    assert post(stack.environment["REWARD_PORT"], b" " * 3000) == 400


@pytest.mark.nightly
def test_changed_code(stack: Tree) -> None:
    """`make up` after a change of a file that code reads restarts reward server and workers alone."""
    mine = stack.path / "mine.py"
    mine.write_text(A_REWARD_FUNCTION)
    up(stack, REWARD_FUNCTIONS="mine.py")
    before = pids(stack)
    mine.write_text(f"{A_REWARD_FUNCTION}\n# changed\n")
    up(stack, REWARD_FUNCTIONS="mine.py")
    after = pids(stack)
    assert [name for name in SERVICES if after[name] != before[name]] == ["rules", "worker"]


def test_a_plan_beside_it(stack: Tree) -> None:
    """`make plan` says what `make up` would restart and start of a stack that runs, and why, and does none of it."""
    up(stack)
    before = pids(stack)
    assert "nothing is restarted" in stack.run("plan").stdout
    shown = stack.run("plan", REWARD_THREADS="3", WORKERS="3", JUDGE_REPLICA="2").stdout.splitlines()
    assert [line for line in shown if line.startswith(("restarting", "starting", "stopping"))] == [
        "restarting rules (changed: REWARD_THREADS)",
        "starting worker-3",
    ]
    assert "warning: unknown setting JUDGE_REPLICA has no effect; did you mean JUDGE_REPLICAS?" in shown
    assert pids(stack) == before


def test_a_plan_of_another_stack(stack: Tree, tmp_path: Path) -> None:
    """A stack in another directory is named as the holder of a port, with what ends it and a command that starts this
    one beside it."""
    up(stack)
    beside = str(tmp_path / "beside")
    said = stack.run("plan", RUN_DIR=beside).stdout
    assert f") of the stack in {stack.path}/.run\n" in said and "Debian" not in said
    assert f"{COMMAND}RUN_DIR={stack.path}/.run make down\n" in said
    chosen = dict(word.split("=") for word in said.splitlines()[-1].split()[:-2])
    assert chosen["RUN_DIR"] == beside and chosen["STACK"] == "native"
    assert chosen["REWARD_PORT"] != stack.environment["REWARD_PORT"]
    assert stack.run("plan", **chosen).returncode == 0


def test_a_reward_function_that_cannot_be_loaded(stack: Tree) -> None:
    """`make up` says which line of the file is wrong, and the reward server that runs is left alone."""
    before = pids(stack)
    (stack.path / "broken.py").write_text("\ndef broken(response:\n")
    result = stack.run("up", REWARD_FUNCTIONS="broken.py")
    assert (result.returncode, "ERROR: REWARD_FUNCTIONS: " in result.stdout) == (1, True), result.stdout
    assert "SyntaxError" in result.stdout and "(broken.py, line 2)" in result.stdout
    assert "Traceback" not in result.stdout and pids(stack) == before
    (stack.path / "broken.py").write_text("NOTHING = 1\n")
    empty = stack.run("up", REWARD_FUNCTIONS="broken.py").stdout
    assert ("broken.py has no reward function" in empty, empty.count("ERROR: REWARD_FUNCTIONS: ")) == (True, 1), empty


def test_concurrent_commands_are_refused(stack: Tree) -> None:
    """A second `make up` or `make down` is refused while another one runs."""
    with (stack.path / ".run/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = stack.run("down")
    assert (result.returncode, "another make up or make down is running here" in result.stdout) == (1, True)


def test_logs(stack: Tree) -> None:
    """`make logs` shows every service's log, or one service's; an unknown name lists the services."""
    every = stack.run("logs").stdout
    assert [name for name in SERVICES if f"{stack.path.name}/.run/logs/{name}.log" not in every] == []
    one = stack.run("logs", "--service", "cache").stdout
    assert "cache.log" in one and "rules.log" not in one
    unknown = stack.run("logs", "--service", "nginx").stdout
    assert "the services are cache, queue, rules, worker, worker-2, gateway" in unknown


@pytest.mark.nightly
def test_secrets(stack: Tree) -> None:
    """With API keys, a port of the cache and its secret the samples are scored all the same; no secret is shown, nor on
    a command line; the URL of the cache that is printed works in a shell, and the cache asks for its password."""
    port = str(free_port())
    secrets = {
        "REWARD_SERVER_API_KEYS": "sesame-one-of-the-tests,sesame-two-of-the-tests",
        "CACHE_PASSWORD": "sesame-three",
        "CACHE_PORT": port,
    }
    said = up(stack, REWARD_CACHE_SECRET="sesame-four", **secrets)
    assert {status for status, _ in statuses(said)} == {"ok"}
    assert "export REWARD_CACHE_SECRET=" in said
    assert post(stack.environment["REWARD_PORT"], b"{}") == 401
    shown = said + stack.run("status").stdout + stack.run("logs").stdout
    lines = [" ".join(process.command) for process in working_in(stack)]
    assert len(lines) >= 7 and "sesame" not in shown + "".join(lines)
    exported = next(line for line in said.splitlines() if "export REWARD_CACHE_URL" in line)
    shell = ["sh", "-c", f"{exported}\necho $REWARD_CACHE_URL"]
    done = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"redis://:sesame-three@localhost:{port}/0"
    with redis.Redis.from_url(done.stdout.strip()) as client:
        assert client.ping()
    with redis.Redis(port=int(port)) as keyless, pytest.raises(redis.AuthenticationError):
        keyless.ping()


@pytest.mark.nightly
def test_service_that_does_not_come_up(stack: Tree) -> None:
    """A service that fails is named with its error and a remedy below its last log lines, and `make up` fails."""
    broken = stack.path / "broken.jsonl"
    broken.write_text("no JSON\n")
    result = stack.run("up", DATASET_PATH=str(broken))
    assert result.returncode == 1
    ended = r"ERROR: (rules|worker): exited during startup: .*DATASET_PATH: (.|\n)* — .*REWARD_FUNCTIONS"
    assert re.search(ended, result.stdout) and "--- last lines of " in result.stdout


@pytest.mark.nightly
def test_service_that_takes_too_long(stack: Tree) -> None:
    """`make up` waits UP_TIMEOUT seconds and no longer."""
    slow = stack.path / "slow.py"
    slow.write_text("import time\ntime.sleep(3600)\n")
    result = stack.run("up", REWARD_FUNCTIONS=str(slow), UP_TIMEOUT="30")
    assert result.returncode == 1
    assert "ERROR: rules: not healthy after 30 s (UP_TIMEOUT)" in result.stdout, result.stdout


@pytest.mark.nightly
def test_interrupted(tree: Tree) -> None:
    """Ctrl-C while `make up` waits says what to do, and `make down` then stops everything."""
    with tree.start("up") as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if " healthy (" in line)
        process.send_signal(signal.SIGINT)
        shown = line + process.stdout.read()
    assert (process.returncode, "interrupted; run `make down` to stop services that still run" in shown) == (130, True)
    assert tree.run("down").returncode == 0
    assert working_in(tree) == []
    assert tree.run("down").stdout == "nothing runs here\n"


def post(port: str, body: bytes) -> int:
    """Status of the answer to a POST to /v1/score."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/score", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
