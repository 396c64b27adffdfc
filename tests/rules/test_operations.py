"""Running a server: probes, metrics, stopping, reloading, workers that die."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis as redis_client
import requests

from rewardstack import Request, score
from rewardstack.cache import link
from rewardstack.cache.key import PREFIX
from rewardstack_rules.run_reward_server import _warn_if_open
from rewardstack_rules.settings import Settings
from tests.rules.conftest import HERE, RewardServer
from tests.support.servers import Redis
from tests.support.table import Table
from tests.support.waiting import eventually

PATIENT = HERE / "functions" / "patient_redis.py"
ITEM = {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"}
MINE = {"data_source": "rule_remote_mine", "solution_str": "a"}
SOURCE = """\
import pathlib, time
from rewardstack_rules import reward_function

@reward_function
def mine(response, reference=None):
"""
Start = Callable[..., RewardServer]


def metric(text: str, name: str) -> float:
    """The value of a metric, written with its labels; 0 where it is not there."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_probes(server: RewardServer) -> None:
    """A server that runs is healthy and ready."""
    health, ready = server.get("/health"), server.get("/ready")

    assert (health.status_code, health.json()["status"]) == (200, "ok")
    assert (ready.status_code, ready.json()["checks"]) == (200, {"registry": True, "isolation": True, "places": True})


def test_metrics_over_all_workers(start: Start) -> None:
    """Whichever worker is asked, it tells the counts of all, those that have died included."""
    server = start("--workers", "2")
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: server.score(ITEM, ITEM), range(20)))
    server.score(ITEM | {"solution_str": None})
    server.get("/nothing-here")
    before = server.workers()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(server.workers()) == 2 and not set(server.workers()) & set(before))

    text = server.get("/metrics").text

    assert metric(text, 'rewardstack_samples_total{route="rule:gsm8k",status="ok"}') == 40
    assert metric(text, 'rewardstack_samples_total{route="none",status="unscored"}') == 1
    assert 0 < metric(text, 'rewardstack_cache_hits_total{route="rule:gsm8k"}') < 40
    assert metric(text, 'rewardstack_requests_total{code="200",endpoint="/v1/score"}') == 21
    assert metric(text, 'rewardstack_requests_total{code="404",endpoint="unknown"}') == 1
    assert metric(text, 'rewardstack_request_duration_seconds_count{endpoint="/v1/score"}') == 21


@pytest.mark.parametrize("arguments", [("--workers", "2"), ()])
def test_stop_in_flight(
    start: Start, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, arguments: Sequence[str]
) -> None:
    """After SIGTERM a request in flight is answered, and nothing is left of the server."""
    temporary = tmp_path_factory.mktemp("t")  # a short path, because isolated processes keep their sockets in it
    body = f"    pathlib.Path({str(begun := tmp_path / 'begun')!r}).touch()\n    time.sleep(1)\n    return 1.0\n"
    (mine := tmp_path / "mine.py").write_text(SOURCE + body)
    server = start(*arguments, fresh=True, REWARD_FUNCTIONS=mine, TMPDIR=temporary, VERIFY_TIMEOUT=60)
    eventually(lambda: len([*temporary.iterdir()]) == 2)  # isolated processes of both kinds

    with ThreadPoolExecutor() as pool:
        in_flight = pool.submit(server.score, MINE)
        eventually(begun.exists)
        server.stop()

    assert in_flight.result()[0]["value"] == 1.0
    eventually(lambda: not any(temporary.iterdir()))


def test_files_of_the_working_folder(start: Start, tmp_path: Path) -> None:
    """Files named like modules of Python break neither gunicorn nor isolated processes of a server started there."""
    (work := tmp_path / "work").mkdir()
    for name in ("re", "json", "random", "runpy", "http", "asyncio"):
        (work / f"{name}.py").write_text("raise ImportError('a file of the user')")
    (script := tmp_path / "serve.py").write_text("from rewardstack_rules.run_reward_server import main\nmain()\n")
    server = start("--workers", "1", command=script, cwd=work)
    hard = {
        "data_source": "math",
        "solution_str": r"\boxed{\frac{\sin(2x)}{2\cos(x)} + y}",
        "ground_truth": r"\sin(x) + y",
    }
    assert [score["value"] for score in server.score(ITEM, hard)] == [1.0, 1.0], server.log.read_text()


def test_reload(start: Start, tmp_path: Path) -> None:
    """SIGHUP takes up changed reward functions and modules, even if two edits of equal size share a second."""
    now = int(time.time())

    def edit(value: float) -> None:
        (helper := tmp_path / "helper_of_mine.py").write_text(f"HALF = {value / 2}\n")
        (mine := tmp_path / "mine.py").write_text(
            f"{SOURCE}    return HALF + {value / 2}\nfrom helper_of_mine import HALF\n"
        )
        for file in (helper, mine):
            os.utime(file, (now, now))

    edit(1.0)
    server = start("--workers", "1", REWARD_FUNCTIONS=tmp_path / "mine.py")
    first = server.score(MINE)[0]["value"]
    edit(3.0)
    [old] = server.workers()

    server.process.send_signal(signal.SIGHUP)

    eventually(lambda: len(server.workers()) == 1 and old not in server.workers())
    assert (first, server.score(MINE)[0]["value"]) == (1.0, 3.0)


def test_reload_of_broken_files(start: Start, tmp_path: Path, table: Table) -> None:
    """After SIGHUP with a file that cannot be loaded, the server keeps what it has, and the log says so."""
    (mine := tmp_path / "mine.py").write_text(f"{SOURCE}    return 1.0\n")
    (golden := tmp_path / "golden.jsonl").write_text('{"question": "q", "answer": "a"}\n')
    files = {mine: "raise ValueError('these functions are broken')", golden: "not a data set"}
    server = start("--workers", "1", REWARD_FUNCTIONS=mine, DATASET_PATH=golden)
    [old], kept = server.workers(), "the old reward functions stay active"
    for count, (file, broken) in enumerate(files.items(), 1):
        whole = file.read_text()
        file.write_text(broken)
        server.process.send_signal(signal.SIGHUP)
        with table.case(file.name):
            eventually(lambda n=count: server.log.read_text().count(kept) == n, server.log.read_text)  # type: ignore[misc]
            assert (server.workers(), server.score(MINE)[0]["value"]) == ([old], 1.0)
        file.write_text(whole)

    mine.write_text(f"{SOURCE}    return 2.0\n")
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: len(server.workers()) == 1 and old not in server.workers(), server.log.read_text)
    eventually(lambda: server.score(MINE)[0]["value"] == 2.0, server.log.read_text)


@pytest.mark.nightly
def test_changed_without_reload(start: Start, tmp_path: Path) -> None:
    """Where worker and isolated processes have different versions of a function the sample fails, saying what to do."""
    (mine := tmp_path / "mine.py").write_text(f"{SOURCE}    return 1.0\n")
    server = start("--workers", "1", REWARD_FUNCTIONS=mine)
    mine.write_text(f"{SOURCE}    return 2.0\n")
    [old] = server.workers()
    os.kill(old, signal.SIGKILL)
    eventually(lambda: len(server.workers()) == 1 and old not in server.workers())

    [score] = server.score(MINE)

    assert (score["status"], "restart or reload the server" in score["reason"]) == ("failed", True)


def test_unix_socket(start: Start, tmp_path: Path) -> None:
    """With REWARD_SOCKET the server listens on a Unix socket."""
    path = tmp_path / "server.sock"
    start("--workers", "1", REWARD_SOCKET=path)

    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.nightly
@pytest.mark.parametrize("command", ["run_reward_server", "reward_server"])
def test_single_process(start: Start, command: str) -> None:
    """Without --workers one process serves, says when it is ready, and stops on SIGTERM."""
    server = start("--reward-type", "example_coding", command=command, fresh=True)

    reply = server.post("/get_reward", {"prompts": ["p"], "responses": ["import os"]})

    assert reply.json()["rewards"] == [0.6]
    assert server.get("/ready").status_code == 200
    assert 'endpoint="/get_reward"' in server.get("/metrics").text
    server.stop()


@contextmanager
def variables(monkeypatch: pytest.MonkeyPatch, **values: str) -> Iterator[None]:
    """The environment of this process with these variables."""
    with monkeypatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        yield


def test_keys_of_client_and_server(
    needs_redis: None, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the server kept in Redis, as it took an isolated process, a client finds there: their keys are the same."""
    redis = Redis(tmp_path)
    try:
        monkeypatch.setattr(link, "TIMEOUT", 60.0)
        keys = {"REWARD_SERVER_API_KEYS": "a-key-of-the-tests", "REWARD_FUNCTIONS": PATIENT}
        server = start("--workers", "1", REWARD_CACHE_URL=redis.url, **keys)
        [by_server] = server.score(
            {"data_source": "math", "solution_str": "$\\sqrt{8}$", "ground_truth": "2\\sqrt{2}"},
            headers={"X-API-Key": "a-key-of-the-tests"},
        )
        eventually(lambda: len(list(redis_client.Redis.from_url(redis.url).scan_iter(f"{PREFIX}*"))) == 1)
        with variables(
            monkeypatch,
            REWARD_SERVER_URL=server.url,
            REWARD_CACHE_URL=redis.url,
            REWARD_SERVER_API_KEY="a-key-of-the-tests",
        ):
            [by_client] = score([Request("math", "$\\sqrt{8}$", "2\\sqrt{2}")])
        requests.get(server.url + "/health", timeout=60)
    finally:
        redis.kill()

    assert (by_server["cached"], by_client.cached, by_client.value) == (False, True, 1.0)


KEY: dict[str, str] = {"REWARD_SERVER_API_KEYS": "a-key-of-the-tests"}
WARNINGS: list[tuple[dict[str, str], tuple[bool, bool]]] = [
    ({"REWARD_HOST": "0.0.0.0"}, (True, True)),
    ({"REWARD_HOST": "reward.example"}, (True, True)),
    ({"REWARD_HOST": "0.0.0.0", **KEY}, (True, False)),
    ({"REWARD_HOST": "localhost"}, (False, False)),
    ({"REWARD_HOST": "::1"}, (False, False)),
    ({"REWARD_HOST": "0.0.0.0", "REWARD_SOCKET": "/run/reward.sock"}, (False, False)),
]
"""Settings, and whether a server warns that it is for trusted networks, and that it asks for no key."""


def test_warnings(caplog: pytest.LogCaptureFixture, table: Table) -> None:
    """A server that others can reach says at its start for whom it is, and that it asks for no key."""
    for environment, expected in WARNINGS:
        caplog.clear()
        _warn_if_open(Settings.from_env(environment))
        with table.case(str(environment)):
            found = "for trusted networks only" in caplog.text, "set REWARD_SERVER_API_KEYS" in caplog.text
            assert found == expected
