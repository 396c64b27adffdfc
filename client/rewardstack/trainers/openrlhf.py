"""OpenRLHF: a reward function for `--reward.remote_url`. Routes to judges and embeddings need no reward server.

    --reward.remote_url "$(python -c 'from rewardstack.trainers import openrlhf; print(openrlhf.__file__)')"
    --data.label_key answer

`REWARD_TYPE` names the route (how to score), such as `gsm8k`. Imports are absolute, because OpenRLHF loads this file by
its path. OpenRLHF calls `reward_func` in threads, with one sample per call (`openrlhf/utils/agent.py` of 0.11.2). If
`reward_func` raises an exception, OpenRLHF logs it, the sample has no reward, and the training step ends with an error.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rewardstack import api
from rewardstack.core.responses import extract_response
from rewardstack.errors import ScoringError
from rewardstack.score import Request
from rewardstack.trainers.columns import count_samples, get_column, route_name

THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Number of samples that OpenRLHF scores concurrently: the number of threads of `asyncio.to_thread`."""
GROUPS = "OpenRLHF scores min(32, CPUs + 4) samples at a time; lower rollout.n_samples_per_prompt, or add CPUs"
"""The remedy if a group has more than `THREADS` members."""


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any] | None, **_: Any
) -> dict[str, Any]:
    """Return the rewards of samples, and metrics for OpenRLHF's logs.

    Args:
        queries: for each sample, the prompt with the response, as decoded from tokens.
        prompts: for each sample, the prompt before tokenization.
        labels: for each sample, the reference; None if there are none.

    Returns:
        `rewards`, `scores` (the same numbers, for dynamic filtering), and `extra_logs` with the lists `failed` and
        `unscored`, which have 1.0 for a sample with that status, and 0.0 for other samples. The reward of an unscored
        sample, e.g. a sample without a label, is 0.

    Raises:
        ScoringError: a sample failed.
        RequestError: the lists differ in length, or a judge compares groups with more members than `THREADS`.
        ConfigError: `REWARD_TYPE` is not a route, or a setting is malformed.
        FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
    """
    source = route_name()
    count = count_samples(queries, "queries")
    rows = zip(queries, get_column(prompts, count, "prompts"), get_column(labels, count, "labels"), strict=True)
    requests = [
        Request(source, extract_response(query, prompt), label, {"prompt": prompt}) for query, prompt, label in rows
    ]
    api.check_groups(requests, GROUPS, THREADS)
    scores = api.score(requests, on_error="none")
    failed = [score.reason for score in scores if score.status == "failed"]
    if failed:
        raise ScoringError(f"{len(failed)} of {len(scores)} samples failed; first error: {failed[0]}", scores)
    rewards = [0.0 if score.value is None else score.value for score in scores]
    logs = {name: [float(score.status == name) for score in scores] for name in ("failed", "unscored")}
    return {"rewards": rewards, "scores": rewards, "extra_logs": logs}
