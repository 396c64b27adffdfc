"""What code that runs in a confined function can reach: over HTTP, by a function that executes its response."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack.errors import SettingsError
from rewardstack_rules.isolation.child import HINT
from rewardstack_rules.settings import RuleSettings
from tests.rules.conftest import RewardServer, running
from tests.support.isolated import children_of
from tests.support.table import Table
from tests.support.waiting import eventually

ATTEMPTS = ("asks", "runs", "writes")
FUNCTIONS = """\
import os, socket, subprocess, tempfile
from rewardstack_rules import reward_function

def asks(response, reference=None):
    socket.socket().close()
    return 1.0

def runs(response, reference=None):
    return float(subprocess.run(["true"]).returncode == 0)

def writes(response, reference=None):
    with tempfile.TemporaryFile(dir=os.path.dirname(__file__)) as file:
        return float(file.write(b"x"))

for function in (asks, runs, writes):
    vars()["open_" + function.__name__] = reward_function(name="open_" + function.__name__)(function)
"""
CONFINED = """\
import ctypes, errno
from rewardstack_rules import reward_function
import attempts

libc = ctypes.CDLL(None, use_errno=True)

@reward_function(confined=True)
def asks(response, reference=None):
    return attempts.asks(response)

@reward_function(confined=True)
def runs(response, reference=None):
    return attempts.runs(response)

@reward_function(confined=True)
def writes(response, reference=None):
    return attempts.writes(response)

def call(number, *arguments):
    \"\"\"The name of the error, or `done`.\"\"\"
    ctypes.set_errno(0)
    return "done" if libc.syscall(number, *arguments) >= 0 else errno.errorcode[ctypes.get_errno()]

def tried(action):
    try:
        return f"done: {action()!r}"
    except OSError as error:
        return errno.errorcode[error.errno]

@reward_function(confined=True)
def executes(response, reference=None):
    names = {"call": call, "tried": tried, "libc": libc, "ctypes": ctypes}
    exec(response, names)
    return {"score": 1.0, "reason": str(names["result"])}
"""
REFUSED = {
    # those of the review, by their numbers on x86-64
    "mount, old": "call(165, b't', b'/mnt', b'tmpfs', 0, 0)",
    "mount, new": "call(430, b'tmpfs', 0)",
    "configure a mount": "call(431, 0, 0, 0, 0, 0)",
    "make a mount": "call(432, 0, 0, 0)",
    "move a mount": "call(429, 0, b'', 0, b'/mnt', 0)",
    "make a file immutable": "call(16, 0, 0x40086602, b'0000')",
    "write an attribute": "call(463, -100, b'/tmp', 0, b'user.x', 0, 0)",
    "change attributes": "call(469, -100, b'/tmp', b'0' * 24, 24, 0)",
    "share memory": "call(30, 0, 0, 0)",
    "send a message": "call(69, 0, b'', 0, 0)",
    "wait for a semaphore": "call(65, 0, 0, 0)",
    "lock a file": "tried(lambda: __import__('fcntl').flock(open(__import__('os').__file__), 2))",
    # others of their kinds
    "clone a mount": "call(428, -100, b'/', 1)",
    "change a mount": "call(442, -100, b'/', 0, 0, 0)",
    "make shared memory": "call(29, 0, 4096, 0o1600)",
    "make a queue": "call(68, 0, 0o1600)",
    "open a POSIX queue": "call(240, b'q', 0o102, 0o600, 0)",
    "lock by fcntl": "tried(lambda: __import__('fcntl').lockf(open(__import__('os').__file__), 1))",
    "lease a file": "tried(lambda: __import__('fcntl').fcntl(open(__import__('os').__file__), 1024, 0))",
    "submit to io_uring": "call(425, 8, b'0' * 120)",
    "keep a key": "call(248, b'user', b'x', b'y', 1, -3)",
    "load a module": "call(313, 0, b'', 0)",
    "read memory of the parent": "call(310, __import__('os').getppid(), 0, 0, 0, 0, 0)",
    "trace the parent": "call(101, 16, __import__('os').getppid(), 0, 0)",
    "take a descriptor of the parent": "call(434, __import__('os').getppid(), 0)",
    "let a process trace it": "call(157, 0x59616D61, -1, 0, 0, 0)",
    "become root": "call(105, 0)",
    "regain capabilities": "call(126, b'0' * 8, b'0' * 24)",
    "make a namespace": "call(272, 0x10000000)",
    "type into the terminal": "call(16, 0, 0x5412, b'x')",
    "make a file in memory": "call(319, b'x', 0)",
}
UNKNOWN = ("call(471)", "call(999)", "call(0x40000000 + 520)", "call(435, 0, 0)", "call(437, -100, b'/', 0, 0)")


@pytest.fixture(scope="module")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with functions that try what they should not, confined and not."""
    folder = tmp_path_factory.mktemp("confined")
    (folder / "attempts.py").write_text(FUNCTIONS)
    (folder / "confined.py").write_text(CONFINED)
    (folder / "key.txt").write_text("s3cret")
    (data := folder / "data").mkdir()
    (data / "words").write_text("the operator's")
    files = f"{folder / 'attempts.py'}:{folder / 'confined.py'}"
    wider = {"REWARD_FUNCTIONS_FILES": data, "REWARD_FUNCTIONS_ALLOW": "sched_setaffinity"}
    variables = {"REWARD_FUNCTIONS": files, "VERIFY_PROCESSES": 1, **wider}
    with running(folder, "--workers", "1", fresh=True, **variables) as one:
        yield one


def sample(name: str, text: str = "a") -> dict[str, Any]:
    """A sample for one of those functions."""
    return {"data_source": f"rule_remote_{name}", "solution_str": text}


def execute(server: RewardServer, *expressions: str) -> list[str]:
    """What Python expressions are inside of a confined function."""
    scores = server.score(*(sample("executes", f"result = {expression}") for expression in expressions))
    return [score["reason"] for score in scores]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_confined(server: RewardServer, attempt: str) -> None:
    """A confined function fails its sample, and the reason names what it may not; another one may."""
    confined, unconfined = server.score(sample(attempt), sample(f"open_{attempt}"))

    assert ("failed", True) == (confined["status"], confined["reason"].endswith(HINT)), confined["reason"]
    assert ("ok", 1.0) == (unconfined["status"], unconfined["value"])


def test_refused(server: RewardServer, table: Table) -> None:
    """Nothing mounts, locks, shares memory, reaches another process or changes a file, also as root."""
    for name, found in zip(REFUSED, execute(server, *REFUSED.values()), strict=True):
        with table.case(name):
            assert found == "EPERM"
    for expression, found in zip(UNKNOWN, execute(server, *UNKNOWN), strict=True):
        with table.case(expression):
            assert found == "ENOSYS"


def test_reading(server: RewardServer, table: Table) -> None:
    """A function reads code and what the operator named; no key, no other process, nothing of the server's."""
    folder = server.log.parent
    read = "tried(lambda: open({!r}).read(8))"
    hidden = [folder / "key.txt", server.log, "/proc/1/environ", f"/proc/{server.process.pid}/environ", "/etc/shadow"]
    hidden += [f"/proc/{pid}/{name}" for pid in server.processes() for name in ("environ", "maps", "mem", "fd/0")]
    for path, found in zip(hidden, execute(server, *(read.format(str(path)) for path in hidden)), strict=True):
        with table.case(str(path)):
            assert found == "EACCES"
    shown = [folder / "data" / "words", folder / "confined.py", os.__file__, "/proc/self/stat"]
    results = execute(server, *(read.format(str(path)) for path in shown))
    assert [result.partition(":")[0] for result in results] == ["done"] * len(shown)


def test_capabilities(server: RewardServer) -> None:
    """A confined process has no capability, can gain none, and no program could."""
    status = "{line.split()[0]: line.split()[1] for line in open('/proc/self/status') if ':' in line.split()[0]}"
    wanted = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
    [found] = execute(server, f"[{{**{status}}}[name + ':'] for name in {wanted}]".replace("split()[1]", "split()[-1]"))
    sets = re.findall(r"'(\w+)'", found)
    if os.geteuid() != 0:
        del sets[3]  # only root can empty the bounding set, and nobody gains what is in it
    assert {*sets[:-2]} == {"0" * 16} and sets[-2:] == ["1", "2"]


def test_widened(server: RewardServer) -> None:
    """The system call that the operator named is allowed, and the log says so."""
    found = execute(
        server, "tried(lambda: __import__('os').sched_setaffinity(0, __import__('os').sched_getaffinity(0)))"
    )
    assert found == ["done: None"]
    assert "confined reward functions may also use: sched_setaffinity" in server.log.read_text()


def test_libraries(server: RewardServer) -> None:
    """Threads, numpy and modules that are imported late work."""
    expressions = (
        "__import__('numpy').linalg.inv(__import__('numpy').eye(300)).sum()",
        "list(__import__('concurrent.futures').futures.ThreadPoolExecutor(4).map(abs, range(-3, 0)))",
        "__import__('wave').__name__",
        "__import__('zoneinfo').ZoneInfo('Europe/Paris').key",
    )
    assert execute(server, *expressions) == ["300.0", "[3, 2, 1]", "wave", "Europe/Paris"]


def test_settings(table: Table) -> None:
    """What cannot be allowed, or is not there, is refused at the start; the message names it."""
    cases = {
        "ptrace": {"REWARD_FUNCTIONS_ALLOW": "network, ptrace"},
        "mount": {"REWARD_FUNCTIONS_ALLOW": "mount"},
        "/not/there": {"REWARD_FUNCTIONS_FILES": "/usr:/not/there"},
    }
    for named, environ in cases.items():
        with table.case(named), pytest.raises(SettingsError, match=f"^{next(iter(environ))}: .*{named}"):
            RuleSettings.from_env(environ)


def test_built_in(server: RewardServer) -> None:
    """The processes that run built-in and confined functions have the filter, that for open functions has none."""

    def has_filters() -> bool:
        """Whether they are so: soon, because a child that was slow is replaced and one that is forked is confined."""
        with contextlib.suppress(OSError):  # a child that has just ended
            status = [Path(f"/proc/{child}/status").read_text() for child in children_of(server.url.rpartition(":")[2])]
            filters = [line.split()[1] for text in status for line in text.splitlines() if line.startswith("Seccomp:")]
            return sorted(filters) in (
                ["0", "2"],
                ["0", "2", "2"],
            )  # those for confined ones start when they are needed
        return False

    eventually(has_filters)
