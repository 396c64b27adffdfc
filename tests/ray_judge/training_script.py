"""A training script: it starts the judge in the cluster that it is given, or in its own, asks it, and ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rewardstack.ray_judge import start_reward_service
from rewardstack.ray_judge.cluster import connect
from tests.ray_judge.fake_engine import FakeEngine

if __name__ == "__main__":
    with connect(sys.argv[1], processors=8):
        import ray

        judge = start_reward_service("fake", 2, engine=FakeEngine)
        reply = ray.get(judge.score.remote([{"role": "user", "content": "Is it 42?"}]))
        print(reply, Path(os.environ["RAY_AUTH_TOKEN_PATH"]).parent)
