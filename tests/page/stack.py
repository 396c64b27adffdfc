"""A small stack to look at: a reward server, its judges, an embedding server, Redis, a queue and a worker."""

from __future__ import annotations

import json
import random
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.client.embedding.conftest import STAND_IN
from tests.client.judge.conftest import FAKE_JUDGE
from tests.rules.conftest import ROOT, RewardServer, clean_environment
from tests.support.jobs import Queue, Worker
from tests.support.servers import FaultServer, Redis

KEY = "first-key-of-tests"
HEADERS = {"X-API-Key": KEY}
HOSTILE = ROOT / "tests/rules/functions/hostile.py"
SCRIPT = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
"""What must be shown, and not run, wherever it stands."""


class Stack:
    """Servers of their own, each a process; gone on `close`.

    Args:
        folder: for files and logs.
        model: that the judge says it serves.
        variables: of the reward server's environment.
    """

    def __init__(self, folder: Path, model: str = "Qwen/Qwen3-32B", **variables: Any) -> None:
        self._exits = ExitStack()
        self.judge = FaultServer(script=FAKE_JUDGE)
        self.embedding = FaultServer(script=STAND_IN)
        self.cache, self.queue = Redis(folder), Queue(folder)
        for one in (self.judge, self.embedding, self.cache, self.queue):
            self._exits.callback(one.kill)
        self.judge.set(
            models=[{"id": model, "root": model}], usage={"prompt_tokens": 412, "completion_tokens": 38}, delay=0.05
        )
        routes = folder / "routes.json"
        routes.write_text(json.dumps({"judges": {"strict": {"base_url": self.judge.url, "model": model}}}))
        self._variables = {
            "REWARD_CACHE_URL": self.cache.url,
            "REWARD_QUEUE_URL": self.queue.url,
            "REWARDSTACK_ROUTES": routes,
            "REWARD_JOB_CHUNK_SIZE": 5,
            "REWARD_FUNCTIONS": HOSTILE,
            "VERIFY_PROCESSES": 2,
            "VERIFY_TIMEOUT": 5,
            "LLM_JUDGE_SERVER_URL": self.judge.url,
            "LLM_JUDGE_SERVER_TIMEOUT": 5,
            "EMBEDDING_SERVER_URL": self.embedding.url,
            "EMBEDDING_SERVER_TIMEOUT": 5,
            "REWARD_SERVER_API_KEYS": KEY,
            **variables,
        }
        self._folder = folder
        self.server = RewardServer(folder, "--workers", "2", **self._variables)
        self._exits.callback(lambda: self.server.process.wait())
        self._exits.callback(lambda: self.server.process.terminate())
        self.server.wait_until_ready()

    def add_worker(self) -> None:
        """A worker, ready."""
        worker = Worker(self._folder, clean_environment(**self._variables))
        self._exits.callback(worker.kill)
        worker.wait_until_ready()

    def load(self, count: int = 1, seed: int = 0) -> None:
        """Samples of several routes, most of them scored, some not.

        Args:
            count: of requests.
            seed: of what is chosen; the same one asks the same, so that the cache has some.
        """
        chosen = random.Random(seed)
        for _ in range(count):
            at = chosen.randrange(10_000)
            items = [
                {"data_source": "gsm8k", "solution_str": f"#### {at}", "ground_truth": str(at + (at % 3 == 0))},
                {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"},
                {"data_source": "math_verifier", "solution_str": f"\\boxed{{{at}}}", "ground_truth": f"{at}"},
                {"data_source": "llm_judge_remote", "solution_str": f"It is {at}.", "ground_truth": "42"},
                {"data_source": "embedding_remote", "solution_str": f"a cat {at}", "ground_truth": "a cat"},
            ]
            if at % 5 == 0:
                items.append({"data_source": "strict", "solution_str": f"{at}", "ground_truth": "42"})
            if at % 9 == 0:
                items.append({"data_source": "gsm8k", "solution_str": f"#### {at}"})
            if at % 40 == 0:
                items.append({"data_source": "rule_remote_raises", "solution_str": f"{at} {SCRIPT}"})
            self.server.post("/v1/score", {"items": items}, headers=HEADERS)

    def submit(self, count: int) -> str:
        """A job of so many samples; its id."""
        items = [{"data_source": "gsm8k", "solution_str": f"#### {at}", "ground_truth": "7"} for at in range(count)]
        job: str = self.server.post("/jobs", {"items": items}, headers=HEADERS).json()["job_id"]
        return job

    def status(self) -> dict[str, Any]:
        """What the server tells, made after this was called."""
        time.sleep(1.1)
        found: dict[str, Any] = self.server.get("/v1/status", headers=HEADERS).json()
        return found

    def close(self) -> None:
        """Everything is gone."""
        self._exits.close()
