"""Send hostile requests to a reward server, kind by kind, and check after each kind that it still scores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.support.hostile.attack import RIGHT, Attack, Reply, complaint, message, send, unclear
from tests.support.hostile.kinds import KINDS, make
from tests.support.hostile.protocols import SAMPLE, laborious
from tests.support.waiting import eventually

NO_REPLY = 0
"""Status in `counts` of a request without a reply."""
JOB_ENDS = ("finished", "failed", "canceled")
JOBS_READ = 10
"""Maximum number of jobs of a run whose results are read."""


class StressTest:
    """Sends hostile requests, and fails at the first wrong reply.

    Args:
        url: base URL of a reward server with a queue and a worker.
        seed: seed of the requests.
        servers: returns the ids of the server's processes, which must not change.

    Attributes:
        counts: number of requests by kind and HTTP status.
    """

    def __init__(self, url: str, seed: int, servers: Callable[[], object]) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()
        self._url, self._seed, self._servers = url, seed, servers
        self._jobs: list[tuple[Attack, str]] = []

    def run(self, count: int) -> None:
        """Send at least `count` requests, the same number of each kind.

        Raises:
            AssertionError: a reply is wrong, a process ended, or an ordinary sample has a wrong score.
        """
        for kind in KINDS:
            before = self._servers()
            for number in range(-(-count // len(KINDS))):
                attack = make(kind, self._seed, number)
                reply = send(self._url, attack)
                wrong = complaint(attack, reply) or unclear(attack, reply)
                assert not wrong, f"seed {self._seed}, number {number}: {wrong}\n{attack}\n{reply}"
                self._count(attack, reply)
            self._look_after(kind)
            assert before == self._servers(), f"seed {self._seed}: a server process ended during {kind}"
        self._read_jobs()

    def _count(self, attack: Attack, reply: Reply | None) -> None:
        self.counts[attack.kind, reply.status if reply else NO_REPLY] += 1
        if reply is not None and reply.status == 202 and attack.neighbours:
            self._jobs.append((attack, reply.json()["job_id"]))

    def _look_after(self, kind: str) -> None:
        """Check the scores of two ordinary samples, one of which needs an isolated process."""
        body = json.dumps({"items": [SAMPLE, laborious()]}).encode()
        ordinary = Attack(f"after {kind}", (message("POST", "/v1/score", body),), neighbours=(0, 1))
        reply = send(self._url, ordinary)
        assert reply is not None and reply.status == 200 and not complaint(ordinary, reply), f"{ordinary}\n{reply}"

    def _read_jobs(self) -> None:
        for attack, job_id in self._jobs[-JOBS_READ:]:
            eventually(partial(self._has_ended, job_id), partial(str, attack))
            lines = self._lines(f"/jobs/{job_id}/results")
            assert lines[1:2] == self._lines(f"/jobs/{job_id}/results?start=1&count=1"), f"job {job_id}: another page"
            values = {at: lines[at]["value"] for at in attack.neighbours}
            assert values == dict.fromkeys(attack.neighbours, RIGHT), f"job {job_id}: {values}\n{attack}"

    def _has_ended(self, job_id: str) -> bool:
        return self._get(f"/jobs/{job_id}").json()["status"] in JOB_ENDS

    def _lines(self, target: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._get(target).body.splitlines()]

    def _get(self, target: str) -> Reply:
        reply = send(self._url, Attack("inquiry", (message("GET", target),)))
        assert reply is not None and reply.status == 200, f"{target}: {reply}"
        return reply
