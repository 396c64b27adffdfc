"""The file of `REWARDSTACK_ENDPOINTS`: what it says, when it is believed, and what holds while it cannot be read."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from rewardstack import endpoints
from rewardstack.endpoints import MAX_BYTES, VARIABLE
from rewardstack.errors import SettingsError
from rewardstack.settings import SERVERS, Settings
from tests.support.endpoints import write_endpoints, write_text
from tests.support.snippets import block
from tests.support.table import Table

CASES = json.loads((Path(__file__).parents[1] / "cases/endpoints.json").read_text())
ALL = {
    "REWARD_SERVER_URL": "http://n1:6000",
    "REWARD_SERVER_API_KEY": "hush-rules",
    "LLM_JUDGE_SERVER_URL": "http://n1:8000,http://n2:8000",
    "LLM_JUDGE_SERVER_API_KEY": "hush-judge",
    "REWARD_MODEL_SERVER_URL": "http://n1:8001",
    "REWARD_MODEL_SERVER_API_KEY": "hush-model",
    "EMBEDDING_SERVER_URL": "http://n1:8080",
    "EMBEDDING_SERVER_API_KEY": "hush-embedding",
    "REWARD_CACHE_URL": "redis://:hush@n1:6379/0",
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the file is to be, which `REWARDSTACK_ENDPOINTS` names and which is looked at without a pause."""
    monkeypatch.setattr(endpoints, "CHECK_INTERVAL", 0.0)
    monkeypatch.setenv(VARIABLE, str(path := tmp_path / "endpoints.json"))
    yield path


def refusal() -> str:
    """What is said of the file; it must name the variable, and show no key."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_env()
    said = str(caught.value)
    assert (caught.value.field, said.startswith(f"{VARIABLE}: "), "hush" in said) == (VARIABLE, True, False)
    return said


def test_the_environments_own(file: Path) -> None:
    """What the file names is what the environment would have named by the same variables."""
    assert ALL.keys() == SERVERS.keys()
    write_endpoints(file, ALL)
    assert replace(Settings.from_env(), endpoints="") == Settings.from_env(ALL)


def test_only_what_there_is(file: Path) -> None:
    """A server that the file does not name is not set."""
    write_endpoints(file, {"REWARD_SERVER_URL": "http://n1:6000/v1/"})
    settings = Settings.from_env()
    assert (("http://n1:6000",), (), "") == (settings.reward_server_urls, settings.judge_urls, settings.judge_api_key)


def test_documented(file: Path) -> None:
    """The file that docs/settings.md shows is read, and names what the page says it may."""
    write_text(file, text := block("docs/settings.md", "json", '{"version"'))
    assert [*json.loads(text)["servers"]] == [name for name in SERVERS if name != "REWARD_CACHE_URL"]
    assert Settings.from_env().judge_urls == ("http://n1:8000",)


def test_malformed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """A malformed file is refused by the variable, its path and what is wrong with it."""
    for at, case in enumerate(CASES["malformed"]):
        with table.case(f"{at} {case['text'][:60]}"):
            monkeypatch.setenv(VARIABLE, str(file := tmp_path / f"{at}.json"))
            write_text(file, case["text"])
            said = refusal()
            assert str(file) in said and case["says"] in said


@pytest.mark.parametrize("mode", CASES["open"])
def test_open_to_others(file: Path, mode: str) -> None:
    """A file that others may read or write is refused, with the command that mends it."""
    write_endpoints(file, ALL)
    file.chmod(int(mode, 8))
    assert f"{file} is open to other users (mode {mode}); run `chmod 600 {file}`" in refusal()


def test_of_another_user(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another user is refused, also where root reads it."""
    if os.geteuid() == 0:
        write_endpoints(file, ALL)
        os.chown(file, 4711, 4711)
    else:
        monkeypatch.setenv(VARIABLE, "/etc/passwd")
    assert "not to you; start the stack as yourself" in refusal()


@pytest.mark.parametrize(("make", "why"), [(Path.mkdir, "cannot be read"), (os.mkfifo, "is not a regular file")])
def test_no_regular_file(file: Path, make: Callable[[Path], None], why: str) -> None:
    """A folder and a pipe are refused, and no writer is waited for."""
    make(file)
    file.chmod(0o600)
    said = refusal()
    assert why in said and said.endswith("; set the variable to the file that the stack writes")


def test_behind_a_link(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared storage has links: it is the file behind one that counts."""
    write_endpoints(file.with_name("own"), ALL)
    file.symlink_to("own")
    assert Settings.from_env().reward_server_urls == ("http://n1:6000",)


def test_missing(file: Path) -> None:
    """Where there is no file at the start, it is said who writes it."""
    said = refusal()
    assert f"{file} does not exist" in said and "apptainer/stack.sh up" in said and "Slurm" in said


def test_too_large(file: Path) -> None:
    """No more than 64 KiB are read."""
    write_text(file, " " * MAX_BYTES + "{}")
    assert f"is larger than {MAX_BYTES} bytes" in refusal()


@pytest.mark.parametrize("name", ALL)
def test_beside_a_variable(file: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A variable that the file may set is not set beside it, whether the file sets it or not; both are named."""
    write_endpoints(file)
    monkeypatch.setenv(name, ALL[name])
    with pytest.raises(SettingsError, match=f"^{VARIABLE} and {name} are both set.*; unset one of them") as caught:
        Settings.from_env()
    assert "hush" not in str(caught.value)
    monkeypatch.setenv(name, "")
    assert Settings.from_env().judge_urls == ()


@pytest.mark.parametrize("fault", ["", '{"version": 1, "wri', "missing", "open", *(ALL)])
def test_unusable_for_a_while(file: Path, caplog: pytest.LogCaptureFixture, fault: str) -> None:
    """While the file is missing, half-written or wrong, what it said before holds, with one warning; then it counts."""
    write_endpoints(file, ALL)
    before = Settings.from_env()
    if fault == "missing":
        file.unlink()
    elif fault == "open":
        file.chmod(0o644)
    else:
        write_text(file, json.dumps({"servers": {fault: "hush"}}) if fault in ALL else fault)
    assert [Settings.from_env() for _ in range(3)] == [before] * 3
    assert [one.levelno for one in caplog.records] == [logging.WARNING]
    assert str(file) in caplog.text and "hush" not in caplog.text
    write_endpoints(file, ALL | {"LLM_JUDGE_SERVER_URL": "http://n3:8000"})
    assert Settings.from_env() == replace(before, judge_urls=("http://n3:8000",))


def test_a_change_is_logged(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What has changed is said by its name, without a key."""
    caplog.set_level(logging.INFO)
    write_endpoints(file, ALL)
    Settings.from_env()
    write_endpoints(file, ALL | {"LLM_JUDGE_SERVER_API_KEY": "hush-new"})
    assert Settings.from_env().judge_api_key == "hush-new"
    assert caplog.messages == [f"{VARIABLE}: {file} has changed: LLM_JUDGE_SERVER_API_KEY"]


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 3600.0], ids=["behind", "same", "ahead"])
def test_no_heartbeat(
    file: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """A heartbeat that has ceased is warned of once, whatever the writer's clock; a new one is listened to again."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(endpoints, "time", SimpleNamespace(monotonic=lambda: clock.now))
    for beats, later, warnings in (
        (True, 0, 0),
        (False, 59, 0),
        (False, 2, 1),
        (False, 9, 1),
        (True, 9, 1),
        (False, 61, 2),
    ):
        clock.now += later
        if beats:
            write_endpoints(file, ALL, age=-ahead)
        assert {Settings.from_env().judge_urls for _ in range(2)} == {("http://n1:8000", "http://n2:8000")}
        assert caplog.text.count(" s: is the job still running?") == warnings


def test_one_look_a_second(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within `CHECK_INTERVAL` seconds of a look the file is not looked at again."""
    monkeypatch.setattr(endpoints, "CHECK_INTERVAL", 3600.0)
    write_endpoints(file, ALL)
    before = Settings.from_env()
    write_endpoints(file)
    assert Settings.from_env() == before
