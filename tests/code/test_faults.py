"""No sample is lost where a part of the sandbox is killed, and no verdict changes under load."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from rewardstack_rules.code.formats import read_tests
from rewardstack_rules.code.launcher import LocalLauncher
from rewardstack_rules.code.options import Options
from rewardstack_rules.code.runner import Runner
from rewardstack_rules.confinement.seccomp import ALLOW, JUMP_IF_EQUAL, LOAD, RETURN, Filter, Instruction
from tests.code.cases import sample
from tests.rules.conftest import ROOT, RewardServer, clean_environment
from tests.support.servers import free_port
from tests.support.table import Table
from tests.support.waiting import eventually

TIMEOUT = "23"
"""CODE_TIMEOUT of the servers here, by which their processes are told from those of others."""
SLOW = "import time\nx = input()\ntime.sleep(0.2)\nprint(x)"
TESTS = {"inputs": [f"{number}\n" for number in range(6)], "outputs": [str(number) for number in range(6)]}


def processes(word: str) -> list[psutil.Process]:
    """Return the processes of the servers here that have a word in their command line."""
    found = []
    for one in psutil.process_iter(["cmdline"]):
        with suppress(psutil.Error):
            if word in " ".join(one.info["cmdline"] or ()):
                owners = [p for p in [one, *one.parents()] if "supervisor" in " ".join(p.cmdline())]
                found += [one] if owners and owners[0].environ().get("CODE_TIMEOUT") == TIMEOUT else []
    return found


def launcher() -> psutil.Process:
    """Return the launcher, which what it forks looks like."""
    found = processes("inside/launcher.py")
    first = []
    for process in found:
        with suppress(psutil.NoSuchProcess):  # what it forked has ended since
            first += [process] if process.parent() not in found else []
    [one] = first
    return one


@pytest.fixture
def code_server(start: Callable[..., RewardServer]) -> Iterator[RewardServer]:
    """A server whose processes `processes` finds."""
    yield start("--workers", "1", CODE="on", CODE_PROCESSES=1, CODE_TIMEOUT=TIMEOUT)


def scored_while(
    server: RewardServer, items: Callable[[str], list[dict[str, Any]]], disturb: Callable[[], bool]
) -> list[dict[str, Any]]:
    """Return the scores of samples during which something happened.

    Args:
        server: scores them.
        items: returns the samples, with a word in them so that no cache has them.
        disturb: does it and returns True, if it can be done now.
    """
    while True:  # once more where the samples had ended before it could be done
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(server.score, *items(uuid.uuid4().hex))
            while not (is_disturbed := disturb()) and not asking.done():
                time.sleep(0.05)
        scores = asking.result()
        if is_disturbed or any(one["status"] != "ok" for one in scores):
            return scores


def end(server: RewardServer) -> None:
    """Kill all processes of a server, and with them the requests that it has."""
    master = psutil.Process(server.process.pid)
    for process in [*master.children(), master]:
        process.kill()


def test_killed_parts(code_server: RewardServer) -> None:
    """A killed launcher, runner or process of a program loses no sample and changes no score."""

    kept: list[psutil.Process] = []

    def slow(word: str) -> list[dict[str, Any]]:
        return [sample(f"{SLOW} # {word}", TESTS), sample(f"{SLOW}x # {word}", TESTS)]

    def victim(name: str) -> psutil.Process:
        if not (kept and kept[0].is_running()):  # searched once: a search of all processes takes longer than a program
            kept[:] = [launcher()]
        program = kept[0].children()[0]
        return {"launcher": kept[0], "runner": kept[0].parents()[0], "program": program}[name]

    def kill(name: str) -> bool:
        with suppress(psutil.NoSuchProcess, IndexError, ValueError):  # there is none now, or it has just ended
            victim(name).kill()
            return True
        return False

    for name in ("launcher", "runner", "program"):
        scores = scored_while(code_server, slow, partial(kill, name))
        assert [(one["status"], one["value"]) for one in scores] == [("ok", 1.0), ("ok", 0.0)], name
    eventually(lambda: not any(is_zombie(one) for one in processes("")))


def is_zombie(process: psutil.Process) -> bool:
    """Return whether a process has ended, and nobody has waited for it."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    return False


@pytest.mark.nightly
def test_killed_compiler(needs_compiler: None, code_server: RewardServer) -> None:
    """A killed compiler, or the launcher that runs it, loses no sample and leaves no process."""

    def kill(word: str) -> bool:
        found = [one for one in processes(word) if word != "launcher.py" or one.cmdline()[-1].endswith("g++")]
        for one in found:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        return bool(found)

    def compiled(word: str) -> list[dict[str, Any]]:
        source = f"#include <bits/stdc++.h>\nint main() {{ int x; std::cin >> x; std::cout << x; }} // {word}"
        return [{**sample("", TESTS, language="cpp"), "solution_str": f"```cpp\n{source}\n```"}]

    for word in ("cc1plus", "launcher.py"):
        scores = scored_while(code_server, compiled, partial(kill, word))
        assert [(one["status"], one["value"]) for one in scores] == [("ok", 1.0)], word
    eventually(lambda: not processes("cc1plus"))


UNPRIVILEGED = "from rewardstack_rules.confinement.libc import drop_privileges; drop_privileges()\n"


def test_memory_is_hidden(needs_process: None) -> None:
    """Other processes of the same user cannot read a server that runs programs."""
    server = UNPRIVILEGED + (
        "from rewardstack_rules.scoring.pools import start_pools\n"
        "from rewardstack_rules.settings import RuleSettings\n"
        "start_pools(RuleSettings.from_env()); print('ready', flush=True); input()"
    )
    for code, refused in (("off", False), ("on", True)):
        process = subprocess.Popen(
            [sys.executable, "-c", server],
            env=clean_environment(CODE=code, CODE_TIMEOUT=TIMEOUT, CODE_PROCESSES=1),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        reader = f"{UNPRIVILEGED}open('/proc/{process.pid}/environ').read(1)"
        said = subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True, cwd=ROOT, check=False)
        process.communicate(b"\n", 60)
        assert ("PermissionError" in said.stderr) == refused, (code, said.stderr)


KEY = "key-of-the-sandbox"


def test_keys_take_turns(start: Callable[..., RewardServer]) -> None:
    """A key's program runs before the rest of another key's endless ones, which came first."""
    keys = ("first-key-of-16-characters", "other-key-of-16-characters")
    server = start(
        "--workers", "1", CODE="on", CODE_PROCESSES=1, CODE_TIMEOUT=TIMEOUT, REWARD_SERVER_API_KEYS=",".join(keys)
    )
    first, other = ({"headers": {"Authorization": f"Bearer {key}"}} for key in keys)
    endless = [sample(f"while True: pass  # turn {at}", TESTS, time_limit=1) for at in range(100)]  # expires
    with ThreadPoolExecutor(1) as pool:
        flood = pool.submit(server.score, *endless, **first)
        try:
            eventually(lambda: processes("inside/launcher.py")[1:])
            [score] = server.score(sample("print(input())  # turn", TESTS), **other)
            assert score["value"] == 1.0 and not flood.done()
        finally:
            end(server)
        assert isinstance(flood.exception(), requests.RequestException)


@pytest.mark.nightly
def test_sandbox(start: Callable[..., RewardServer]) -> None:
    """A server has its programs run by the servers of CODE_SANDBOX_URL, with their key, and loses none if one dies."""
    own = {"CODE": "on", "CODE_PROCESSES": 1, "CODE_TIMEOUT": TIMEOUT, "REWARD_SERVER_API_KEYS": KEY}
    sandboxes = [start("--workers", "1", **own) for _ in range(2)]
    urls = ",".join(one.url for one in sandboxes)
    server = start("--workers", "1", CODE_SANDBOX_URL=urls, CODE_SANDBOX_API_KEY=KEY)
    items = [sample(f"{SLOW} # {at}", TESTS) for at in range(6)]
    scores: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: scores.extend(server.score(*items)))
    asking.start()
    time.sleep(0.5)
    for process in [*psutil.Process(sandboxes[0].process.pid).children(), psutil.Process(sandboxes[0].process.pid)]:
        process.kill()
    asking.join(120)
    assert [(one["status"], one["value"], one["details"]["parts"]["passed"]) for one in scores] == [
        ("ok", 1.0, 6.0)
    ] * 6
    assert all(one["source"] == "rule:code" for one in scores)
    assert not server.get("/metrics").text.count("rewardstack_code_up")


def hide_landlock() -> None:
    """Have the kernel say from now on that it has no Landlock."""
    nowhere = 0x00050000 | errno.ENOSYS
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
    Filter(
        [
            Instruction(LOAD, 0, 0, 0),
            Instruction(JUMP_IF_EQUAL, 0, 1, 444),
            Instruction(RETURN, 0, 0, nowhere),
            Instruction(RETURN, 0, 0, ALLOW),
        ]
    ).install()


def test_no_landlock(needs_process: None, tmp_path: Path) -> None:
    """Without Landlock the server does not start with CODE=on, and says why and what to do."""
    command = [
        sys.executable,
        "-m",
        "rewardstack_rules.run_reward_server",
        "--port",
        str(free_port()),
        "--workers",
        "1",
    ]
    done = subprocess.run(
        command,
        env=clean_environment(CODE="on", CODE_TIMEOUT=TIMEOUT),
        cwd=ROOT,
        preexec_fn=hide_landlock,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "no Landlock" in done.stdout + done.stderr and "CODE_BOUNDARY=container" in done.stdout + done.stderr


def test_boundary(needs_process: None) -> None:
    """The operator's word that the container is the boundary starts launchers without Landlock."""
    source = (
        "from tests.code.test_faults import hide_landlock; hide_landlock()\n"
        "from rewardstack_rules.code.launcher import LocalLauncher; import sys\n"
        "one = LocalLauncher(sys.executable, sys.argv[1]); one.start(); one.stop(); print('started')"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", source, boundary], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )
        for boundary in ("container", "")
    ]
    assert said[0].stdout.strip() == "started", said[0].stderr
    assert "no Landlock" in said[1].stderr


@pytest.mark.parametrize(
    ("setting", "program"), [("CODE_PYTHON", "/nonexistent/python"), ("CODE_CXX", "/nonexistent/g++")]
)
def test_wrong_program(needs_process: None, tmp_path: Path, setting: str, program: str) -> None:
    """An interpreter or compiler that cannot be run is refused at the start, by its name."""
    variables: dict[str, Any] = {"CODE": "on", setting: program}
    server = RewardServer(tmp_path, **variables)
    assert server.process.wait(120) != 0 and f"{setting}: {program}" in server.log.read_text()


@pytest.mark.nightly
def test_load_changes_nothing(start: Callable[..., RewardServer]) -> None:
    """With four times as many samples at once as cores, each near its CPU limit, every verdict is the same."""
    server = start("--workers", "1", CODE="on", CODE_PROCESSES=4 * (os.cpu_count() or 1), CODE_TIMEOUT=TIMEOUT)
    busy = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\nprint(1)"
    one = {"inputs": [""], "outputs": ["1"]}
    limit = {"time_limit": 1}  # expires for those that need more of a core's time, however long that takes
    items = [sample(busy.format(seconds) + f" # {at}", one, **limit) for at in range(16) for seconds in (0.6, 1.6)]
    alone = [(1.0, ""), (0.0, "test 1 of 1: time limit")] * 16
    assert [(score["value"], score["reason"]) for score in server.score(*items)] == alone


BOMB = """
import threading, time
threading.stack_size(1 << 15)
try:
    while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
except RuntimeError:
    time.sleep(60)
"""
THREADS = """
import threading, time
time.sleep(2)  # in which a bomb starts as many threads as it may
threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(64)]
for one in threads: one.start()
for one in threads: one.join()
print(1)
"""
ONE = {"inputs": [""], "outputs": ["1"]}


def test_thread_bomb(start: Callable[..., RewardServer]) -> None:
    """A program starts its threads while another has as many as it may."""
    server = start("--workers", "1", CODE="on", CODE_PROCESSES=4, CODE_TIMEOUT=TIMEOUT)
    bombs = [sample(f"{BOMB}# {at}", ONE, time_limit=3) for at in range(3)]  # expires
    score, *_ = server.score(sample(THREADS, ONE), *bombs)
    assert (score["status"], score["value"]) == ("ok", 1.0), score


class SharedLauncher(LocalLauncher):
    """A launcher of a user who also runs other processes."""

    def start(self) -> None:
        super().start()
        self.is_shared = True


def test_shared_limit(needs_process: None, table: Table) -> None:
    """A failure while a limit of threads that others share was full is run again, alone, and never cached."""
    runner = Runner(partial(SharedLauncher, sys.executable, ""), "")
    many = (
        "import threading\nfor _ in range(1100):\n    t = threading.Thread(target=int)\n    t.start()\n    t.join()\n"
    )
    options = Options.read({})
    try:
        for name, program, expected in (
            ("fails", f"{many}print(2)", (0.0, True)),
            ("passes", f"{many}print(1)", (1.0, False)),
            ("fails without threads", "print(2)", (0.0, False)),
        ):
            with table.case(name), runner.turns.together():
                steps = runner.run("python", program.encode(), read_tests(json.dumps(ONE)), options)
                with pytest.raises(StopIteration) as end:
                    next(steps)  # the only test
                found = end.value.value
                assert (found["value"], found["volatile"]) == expected, found
    finally:
        runner.stop()


def test_memory_that_is_not_mapped(start: Callable[..., RewardServer]) -> None:
    """A program holds no memory that does not count as its own: anonymous shared memory is refused."""
    server = start("--workers", "1", CODE="on", CODE_PROCESSES=1, CODE_TIMEOUT=TIMEOUT)
    hold = "import mmap\nm = mmap.mmap(-1, 1 << 28)\nfor at in range(0, 1 << 28, 4096): m[at] = 1\n"
    drop = "m.madvise(mmap.MADV_DONTNEED)\nprint(1)"
    zeros = "import mmap\nwith open('/dev/zero') as file: mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)\nprint(1)"
    own = "import mmap\nmmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)[5] = 1\nprint(1)"
    given = "import mmap\nprint(mmap.mmap(0, 0, access=mmap.ACCESS_READ)[:1].decode())"
    scores = server.score(
        *(sample(program, ONE, memory_mb=64) for program in (hold + drop, zeros, own)),
        sample(given, {"inputs": ["1"], "outputs": ["1"]}),
    )
    assert [score["value"] for score in scores] == [0.0, 0.0, 1.0, 1.0], scores


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_nothing_grows(code_server: RewardServer) -> None:
    """Ten thousand runs leave no process, no descriptor and no memory."""

    def used() -> tuple[int, int]:
        both = (launcher(), launcher().parents()[0])
        return sum(one.num_fds() for one in both), sum(one.memory_info().rss for one in both)

    tests = {"inputs": [f"{number}\n" for number in range(250)], "outputs": [str(number) for number in range(250)]}
    for at in range(40):
        assert code_server.score(sample(f"print(input()) # {at}", tests))[0]["value"] == 1.0
        if at == 4:
            before = used()
    eventually(lambda: not launcher().children())
    eventually(lambda: used()[0] == before[0])
    assert used()[1] < before[1] + (8 << 20)


@pytest.mark.nightly
def test_busy_runners(code_server: RewardServer) -> None:
    """A server whose runners are all busy is ready, and scores rules."""
    endless = [sample(f"while True: pass  # {name}", TESTS, time_limit=60) for name in "ab"]
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(code_server.score, *endless)
        try:
            eventually(lambda: processes("inside/launcher.py")[1:])
            assert code_server.get("/ready").status_code == 200
            [score] = code_server.score({"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"})
            assert score["value"] == 1
            assert not busy.done()
        finally:
            end(code_server)
