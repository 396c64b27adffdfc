"""Run the scenarios of `tests/cases/transport.json`: real servers with faults, and what a client sees of them.

Run `python -m tests.support.scenarios [WORD ...]` to print the figures of the scenarios whose names contain all words.

A fault is one of those that `replica.py` describes, or:

    limit               a server accepts 32 requests at a time, and replies 503 to others
    refused             the process is killed; at the end, another one starts at its port
    503 then refused    the same, after half of the time with 503
    frozen              the process is stopped (SIGSTOP)
    lost                the next GET request gets no reply
    moved               the server is killed, and the endpoints file names another one
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rewardstack import Request, Score, score
from rewardstack.endpoints import VARIABLE
from rewardstack.settings import DEFAULTS
from tests.native.nginx import Gateway, load
from tests.support.endpoints import write_endpoints
from tests.support.servers import ROOT, FaultServer
from tests.support.waiting import eventually

REPLICA = ROOT / "tests/support/replica.py"
TABLE = ROOT / "tests/cases/transport.json"
SERVICES = {
    "judge": ("LLM_JUDGE_SERVER_URL", "llm_judge_remote", "judge"),
    "embedding": ("EMBEDDING_SERVER_URL", "embedding_remote", "embedding"),
    "reward server": ("REWARD_SERVER_URL", "math", "rules"),
}
"""Of a service: the variable of its servers, a data source, and its name at the gateway."""
PROBES = 0.5
"""Seconds between two samples that are sent while a fault that has failed all samples lasts."""


class Outcome(NamedTuple):
    """What a client saw.

    Attributes:
        ok, failed: shares of the samples.
        requests: requests that all servers got, per sample.
        of_ill: those that the ill servers got.
        slowest: seconds of the slowest sample.
        reason: reason of a sample that is not ok; empty if all are.
    """

    ok: float
    failed: float
    requests: float
    of_ill: float
    slowest: float
    reason: str


class Scene:
    """The servers of one scenario, of which the first ones are ill.

    Args:
        facts: the scenario.
        stack: closes what is started.
        patch: sets environment variables.
    """

    def __init__(self, facts: Mapping[str, Any], stack: ExitStack, patch: pytest.MonkeyPatch) -> None:
        self._facts, self._stack = facts, stack
        self.variable, self.source, name = SERVICES[facts["service"]]
        for setting in DEFAULTS:
            patch.delenv(setting, raising=False)
        patch.setenv("REWARD_CACHE", "off")
        self.servers = [self._start() for _ in range(facts["servers"])]
        self.ill = self.servers[: facts["ill"]]
        self._file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "endpoints.json"
        urls = [server.url for server in self.servers]
        if facts["gateway"] is not None:
            addresses = {name: [f"127.0.0.1:{server.port}" for server in self.servers]}
            gateway = Gateway(self._file.parent / "g", addresses, load(JUDGE_BALANCING=facts["gateway"]))
            stack.callback(gateway.stop)
            urls = [f"http://127.0.0.1:{gateway.ports[name]}"]
        if facts["fault"] == "moved":
            patch.setenv(VARIABLE, str(self._file))
            write_endpoints(self._file, {self.variable: urls[0]})
        else:
            patch.setenv(self.variable, ",".join(urls))

    def _start(self, port: int = 0) -> FaultServer:
        server = FaultServer(port, REPLICA)
        self._stack.callback(server.kill)
        server.set(delay=self._facts["delay"])
        return server

    def begin(self) -> None:
        """Let the fault begin."""
        fault = self._facts["fault"]
        for server in self.ill:
            if fault == "refused":
                server.kill()
            elif fault == "frozen":
                server.freeze()
            elif fault == "limit":
                server.set(limit=32)
            elif fault == "lost":
                server.set(lost=1)
            elif fault == "503 then refused":
                server.set(ill="503")
                timer = threading.Timer(self._facts["ends"] / 2, server.kill)
                timer.start()
                self._stack.callback(timer.cancel)
            elif fault == "moved":
                self.servers.append(self._start())
                server.kill()
                write_endpoints(self._file, {self.variable: self.servers[-1].url})
            elif fault:
                server.set(ill=fault, until=self._facts["until"])

    def end(self) -> None:
        """Let the fault end."""
        for at, server in enumerate(self.ill):
            if self._facts["fault"].endswith("refused"):
                server.kill()
                self.servers[at] = self.ill[at] = self._start(server.port)
            elif self._facts["fault"] == "frozen":
                server.thaw()
            else:
                server.set(ill="", lost=0, limit=10**6)

    def requests(self, servers: list[FaultServer]) -> int:
        """Return how many requests the servers got that are still there."""
        return sum(server.stats()["requests"] for server in servers if server.process.is_alive())

    def answered(self) -> int:
        """Return how many requests the ill servers have answered well."""
        return sum(server.stats().get("answered", 0) for server in self.ill)

    def score(self, count: int, timeout: float) -> list[Score]:
        """Score as many new samples in one call."""
        run = uuid.uuid4().hex
        extra = {"problem": "p", "timeout": timeout}
        return score([Request(self.source, f"{run} {at}", f"r {at}", extra) for at in range(count)], on_error="none")


def table() -> dict[str, dict[str, Any]]:
    """Return all scenarios by name, with the defaults filled in."""
    found = json.loads(TABLE.read_text())
    return {name: {**found["defaults"], **facts} for name, facts in found["scenarios"].items()}


@contextmanager
def _later(seconds: float | None, change: Callable[[], None]) -> Iterator[None]:
    """Call `change` so many seconds after the block has begun; it has ended when the block has."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, change)
    timer.start()
    yield
    timer.join()


def run(facts: Mapping[str, Any]) -> Outcome:
    """Run a scenario; if the ill servers must get requests again, fail if they do not."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        scene = Scene(facts, stack, patch)
        if not facts["begins"]:
            scene.begin()
        with _later(facts["begins"] or None, scene.begin), _later(facts["ends"], scene.end):
            scores = _score_all(scene, facts)
            until = time.monotonic() + (facts["ends"] or 0) if facts["failed"] else 0.0
            while time.monotonic() < until - PROBES:
                scene.score(1, facts["timeout"])
                time.sleep(PROBES)
        if facts["fault"] == "frozen" and facts["ends"] is None:
            scene.end()
        requests, of_ill = scene.requests(scene.servers), scene.requests(scene.ill)
        if facts["back"]:
            _require_requests_again(scene)
    shares = {status: sum(one.status == status for one in scores) / len(scores) for status in ("ok", "failed")}
    reason = next((f"{one.status}: {one.reason}" for one in scores if one.status != "ok"), "")
    slowest, count = max(one.latency_ms for one in scores) / 1000, len(scores)
    return Outcome(**shares, requests=requests / count, of_ill=of_ill / count, slowest=slowest, reason=reason)


def _score_all(scene: Scene, facts: Mapping[str, Any]) -> list[Score]:
    share = facts["samples"] // facts["calls"]
    with ThreadPoolExecutor(facts["calls"]) as pool:
        calls = [pool.submit(scene.score, share, facts["timeout"]) for _ in range(facts["calls"])]
        return [one for call in calls for one in call.result()]


def _require_requests_again(scene: Scene) -> None:
    before = scene.answered()

    def is_used() -> bool:
        scores = scene.score(32, 30.0)
        return {"ok"} == {one.status for one in scores} and scene.answered() > before

    eventually(is_used, lambda: "the server is back, but it gets no requests")


def faults(facts: Mapping[str, Any], outcome: Outcome) -> list[str]:
    """Return what does not hold of an outcome."""
    wrong = []
    if outcome.ok < facts["ok"]:
        wrong.append(f"{outcome.ok:.1%} ok, of at least {facts['ok']:.0%}: {outcome.reason}")
    if outcome.failed < facts["failed"]:
        wrong.append(f"{outcome.failed:.1%} failed, of at least {facts['failed']:.0%}")
    for name in ("requests", "of_ill"):
        most = facts[name]
        if most is not None and getattr(outcome, name) > most:
            wrong.append(f"{name}: {getattr(outcome, name):.2f} per sample, of at most {most}")
    return wrong


def main(words: list[str]) -> None:
    """Print the figures of each scenario whose name contains all words."""
    print(f"{'scenario':<48} {'ok':>6} {'failed':>6} {'per sample':>10} {'of ill':>6} {'slowest':>8}")
    for name, facts in table().items():
        if not all(word in name for word in words):
            continue
        try:
            found = run(facts)
        except AssertionError as error:
            print(f"{name:<48} {error}", flush=True)
            continue
        row = f"{found.ok:>6.1%} {found.failed:>6.1%} {found.requests:>10.2f} {found.of_ill:>6.2f}"
        print(f"{name:<48} {row} {found.slowest:>6.2f} s {'; '.join(faults(facts, found))[:200]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
