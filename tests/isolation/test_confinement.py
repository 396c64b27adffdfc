"""A confined child has no network, starts no program, writes no file and reads only code; all else works."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewardstack_rules.confinement import confinement, landlock
from rewardstack_rules.isolation.child import HINT
from tests.isolation.processes import MakeClient, run_all

ATTEMPTS = (
    *("socket", "unix_socket", "connect", "run", "fork", "write", "create", "append", "truncate", "change_mode"),
    *("make_folder", "rename", "remove", "read", "list_folder"),
)
SIGNALLING = ("own", "own_ex", "own_by_ioctl", "own_group_by_ioctl", "choose_signal")
AGAINST_OTHERS = ("kill_parent", "trace", "limit_others", "name_machine", *SIGNALLING)
ALLOWED = ("threads", "read", "import_late", "random", "map_memory", "clock", "list_folder", "pipe")
OF_NO_FILE = ("socket", "unix_socket", "connect", "run", "fork")
ENTRY = "isolation_attempts:run"


async def test_refused(make_client: MakeClient, tmp_path: Path) -> None:
    """What a function should not do is refused, with a reason, and nothing has happened."""
    (victim := tmp_path / "victim").write_text("whole")
    attempts = [{"do": attempt, "with": str(victim)} for attempt in (*ATTEMPTS, *AGAINST_OTHERS)]

    results = await run_all(make_client(entry=ENTRY, confined=True), attempts, timeout=60)

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
        assert await client.run({"do": attempt, "with": str(victim)}, timeout=60) == {}


async def test_allowed(make_client: MakeClient, tmp_path: Path) -> None:
    """What libraries need still works: threads, reading, late imports, memory."""
    (file := tmp_path / "file").write_text("text")
    actions = [{"do": action, "with": str(file)} for action in ALLOWED]
    client = make_client(entry=ENTRY, confined=True, files=(str(tmp_path),))

    assert await run_all(client, actions, timeout=60) == [{}] * len(ALLOWED)


async def test_widened(make_client: MakeClient, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What a group adds can be done, in the folders that are named, and the log says so once."""
    (mine := tmp_path / "mine").mkdir()
    client = make_client(entry=ENTRY, confined=True, allow=("network", "programs", "write"), files=(str(mine),))
    for attempt in sorted({*ATTEMPTS} - {"change_mode"}):
        (folder := mine / attempt).mkdir()
        (victim := folder / "victim").write_text("whole")
        (other := tmp_path / "other").write_text("whole")
        results = await run_all(client, [{"do": attempt, "with": str(path)} for path in (victim, other)], timeout=60)
        assert (attempt, results[0]) == (attempt, {})
        assert attempt in OF_NO_FILE or "PermissionError" in results[1]["message"], attempt
    assert capfd.readouterr().err.count("may also use: network, programs, write") == 1


def test_kernel_that_refuses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Where the kernel takes no filter there is none, and the log says why."""

    def refuse(_: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(confinement.Confinement, "enter", refuse)

    assert confinement.make_confinement() is None
    assert "no seccomp filter can be loaded here ([Errno 22] Invalid argument)" in caplog.text


def test_kernel_without_landlock(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Where the kernel has no Landlock the filter is loaded all the same, and the log says what is missing."""
    monkeypatch.setattr(landlock, "version", lambda: 0)

    assert confinement.make_confinement() is not None
    assert "the kernel has no Landlock" in caplog.text
