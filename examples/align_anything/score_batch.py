"""Scores a batch as an Align-Anything trainer does: `python examples/align_anything/score_batch.py [ENDPOINT]`."""

from __future__ import annotations

import sys

from rewardstack.remote_rm_client import RemoteRewardModel

PROMPTS = ["What is 6 * 7?"] * 3
RESPONSES = [
    "<think>6 * 7 is 42.</think><answer>$42$</answer>",
    "<think>6 * 7 is 48.</think><answer>$48$</answer>",
    "It is 42.",
]
GOLDEN_RESPONSES = ["42"] * 3


def main() -> None:
    """Prints each response with its reward."""
    endpoint = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:6000/get_reward"
    model = RemoteRewardModel(endpoint, timeout=100, retry_times=3)
    for response, reward in zip(RESPONSES, model.score(PROMPTS, RESPONSES, GOLDEN_RESPONSES), strict=True):
        print(f"{reward:.1f}  {response}")


if __name__ == "__main__":
    main()
