"""A confined child has no network, starts no program and writes no file; all else that functions do goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewardstack_rules.isolation import confinement
from rewardstack_rules.isolation.confinement import HINT
from tests.isolation.processes import MakeClient

ATTEMPTS = (
    *("socket", "unix_socket", "connect", "run", "fork", "write", "create", "append", "truncate", "change_mode"),
    *("make_folder", "rename", "remove"),
)
SIGNALLING = ("own", "own_ex", "own_by_ioctl", "own_group_by_ioctl", "choose_signal")
AGAINST_OTHERS = ("kill_parent", "trace", "limit_others", "name_machine", *SIGNALLING)
ALLOWED = ("threads", "read", "import_late", "random", "map_memory", "clock", "list_folder", "pipe")
ENTRY = "isolation_attempts:run"


async def test_refused(make_client: MakeClient, tmp_path: Path) -> None:
    """What a function should not do is refused, with a reason, and nothing has happened."""
    (victim := tmp_path / "victim").write_text("whole")
    attempts = [{"do": attempt, "with": str(victim)} for attempt in (*ATTEMPTS, *AGAINST_OTHERS)]

    results = await make_client(entry=ENTRY, confined=True).run(attempts, timeout=5)

    allowed = [attempt for attempt, result in zip(attempts, results, strict=True) if "error" not in result]
    assert allowed == []
    assert [one for one in results if "PermissionError" not in one["message"] or HINT not in one["message"]] == []
    assert (victim.read_text(), list(tmp_path.iterdir())) == ("whole", [victim])


async def test_open(make_client: MakeClient, tmp_path: Path) -> None:
    """A child that is not confined may do what a function does to files and services."""
    client = make_client(entry=ENTRY)
    for attempt in ATTEMPTS:
        (folder := tmp_path / attempt).mkdir()
        (victim := folder / "victim").write_text("whole")
        assert await client.run([{"do": attempt, "with": str(victim)}], timeout=5) == [{}]


async def test_allowed(make_client: MakeClient, tmp_path: Path) -> None:
    """What libraries need goes on: threads, reading, late imports, memory."""
    (file := tmp_path / "file").write_text("text")
    actions = [{"do": action, "with": str(file)} for action in ALLOWED]

    assert await make_client(entry=ENTRY, confined=True).run(actions, timeout=5) == [{}] * len(ALLOWED)


async def test_without_a_filter(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where there is no libseccomp the log says so once, and children work as if they were not confined."""
    (tmp_path / "pyseccomp.py").write_text("raise RuntimeError('Unable to find libseccomp')")
    monkeypatch.syspath_prepend(tmp_path)

    results = await make_client(entry=ENTRY, confined=True).run([{"do": "socket"}] * 2, timeout=5)

    assert ["error" in result for result in results] == [False, False]
    assert capfd.readouterr().err.count("Unable to find libseccomp") == 1


def test_kernel_that_refuses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Where the kernel takes no filter there is none, and the log says why."""

    class Refused:
        def load(self) -> None:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(confinement, "_filter", Refused)

    assert confinement.prepare() is None
    assert "there is no seccomp filter: [Errno 22] Invalid argument" in caplog.text
