"""The files by which a container's probes find out how a worker is."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rewardstack_rules.jobs import sweeper
from rewardstack_rules.jobs.heartbeat import ALIVE, READY
from rewardstack_rules.jobs.link import NOT_THERE, connect
from rewardstack_rules.jobs.sweeper import Sweeper
from rewardstack_rules.process import NOT_READY
from services.stack.services_table import SERVICES
from tests.jobs.test_worker import is_waited_at
from tests.rules.conftest import clean_environment
from tests.support.jobs import Queue, Worker
from tests.support.waiting import eventually

PROBE = SERVICES["worker"].probe
REDIS_PROBE = SERVICES["queue"].probe
REFUSED = f" Connection refused{NOT_THERE}"


def probe(command: tuple[str, ...], folder: Path) -> tuple[int, str]:
    """Exit status and output of a probe in a container whose folder of temporary files is another one."""
    here = [part.replace("/tmp/", f"{folder}/") for part in command]
    done = subprocess.run(here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def test_probes_of_a_worker(needs_redis: None, tmp_path: Path) -> None:
    """A worker is ready while the queue answers, and alive without it; its probes say why, and start no interpreter."""
    silent = (1, "the worker has not shown for two minutes that it runs\n")
    assert probe(PROBE.command, tmp_path) == probe(PROBE.live_command, tmp_path) == silent
    queue = Queue(tmp_path)
    worker = Worker(tmp_path, clean_environment(REWARD_QUEUE_URL=queue.url, TMPDIR=tmp_path, VERIFY_PROCESSES=1))
    ready, alive = (tmp_path / "rewardstack-worker" / name for name in (READY, ALIVE))
    try:
        eventually(lambda: probe(PROBE.command, tmp_path) == probe(PROBE.live_command, tmp_path) == (0, ""))
        queue.kill()
        last = ready.stat().st_mtime
        eventually(lambda: alive.stat().st_mtime > max(last, ready.stat().st_mtime) + 1)
        ready.unlink()
        assert probe(PROBE.command, tmp_path) == (3, "the queue does not answer the worker\n")
        assert "python" not in " ".join((*PROBE.command, *PROBE.live_command))
    finally:
        worker.kill()
        queue.kill()


def test_a_queue_that_is_away_is_logged_once(
    needs_redis: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker logs once that its queue does not answer, with the remedy, and again when that recurs."""
    touched: list[str] = []
    monkeypatch.setattr(sweeper, "INTERVAL", 0.01)
    monkeypatch.setattr(sweeper, "touch", touched.append)
    monkeypatch.setattr(sweeper, "reset", lambda: None)
    queue = Queue(tmp_path)
    one = Sweeper(connect(queue.url, retries=0), "one")

    def refusals() -> int:
        return sum(text.endswith(REFUSED) for text in caplog.messages)

    one.start()
    try:
        for _ in range(2):
            eventually(lambda: touched.count(READY) > 1)  # the first pass after an outage is complete
            queue.kill()
            eventually(lambda: refusals() > 0)
            touched.clear()
            eventually(lambda: len(touched) > 3)
            assert (refusals(), READY in touched) == (1, False)
            caplog.clear()
            queue.start()
    finally:
        one.stop()
        queue.kill()


def test_a_worker_that_ends(needs_redis: None, tmp_path: Path) -> None:
    """A worker that is stopped leaves no heartbeat file."""
    queue = Queue(tmp_path)
    worker = Worker(tmp_path, clean_environment(REWARD_QUEUE_URL=queue.url, TMPDIR=tmp_path, VERIFY_PROCESSES=1))
    try:
        ready = tmp_path / "rewardstack-worker" / READY
        eventually(lambda: ready.exists() and is_waited_at(queue.url))
        worker.process.terminate()
        worker.process.wait()
        assert not (tmp_path / "rewardstack-worker").exists()
    finally:
        worker.kill()
        queue.kill()


def test_a_worker_that_is_silent(tmp_path: Path) -> None:
    """A worker that has not touched its file lately is not ready (3), then not alive."""
    folder = tmp_path / "rewardstack-worker"
    folder.mkdir()
    for name in (READY, ALIVE):
        subprocess.run(["touch", "-d", "60 seconds ago", str(folder / name)], check=True)
    assert (probe(PROBE.command, tmp_path)[0], probe(PROBE.live_command, tmp_path)[0]) == (NOT_READY, 0)
    subprocess.run(["touch", "-d", "180 seconds ago", str(folder / ALIVE)], check=True)
    assert (probe(PROBE.command, tmp_path)[0], probe(PROBE.live_command, tmp_path)[0]) == (1, 1)


def test_probes_of_redis(needs_redis: None, tmp_path: Path) -> None:
    """The probe of cache and queue says nothing of a server that answers, and what redis-cli says of another one."""
    queue = Queue(tmp_path)
    here = [part.replace("redis-cli", f"redis-cli -p {urlsplit(queue.url).port}") for part in REDIS_PROBE.command]
    assert subprocess.run(here, capture_output=True, check=False).stdout == b""
    queue.kill()
    done = subprocess.run(here, capture_output=True, check=False)
    assert (done.returncode, b"Connection refused" in done.stdout) == (1, True)
