"""A metric of lm-eval-harness that is a route of rewardstack: `process_results: !function rewards.process_results`."""

from typing import Any

from rewardstack import Request, score


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """The reward of one answer; without one only `failed` is counted, so that an outage lowers no mean."""
    extra = {"question": doc["question"]}
    [found] = score([Request("gsm8k", results[0], doc["answer"], extra)], on_error="none")
    failed = {"failed": float(found.value is None)}
    return failed if found.value is None else {"reward": found.value, **failed}
