"""Scores a group as slime does under `--group-rm`: `python examples/slime/score_group.py`.

The samples have the fields of slime's `Sample` that a reward reads; `REWARD_SERVER_URL` says where a reward server is.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from rewardstack.trainers.slime import reward

ARGUMENTS = SimpleNamespace(rm_type="math")
RESPONSES = [r"6 * 7 is \boxed{42}.", r"6 * 7 is \boxed{48}.", "The answer is forty-two."]
GROUP = [
    SimpleNamespace(index=index, prompt="What is 6 * 7?", response=response, label="42", metadata={})
    for index, response in enumerate(RESPONSES)
]


async def main() -> None:
    """Prints each response with its reward."""
    for sample, value in zip(GROUP, await reward(ARGUMENTS, GROUP), strict=True):
        print(f"{value:.1f}  {sample.response}")


if __name__ == "__main__":
    asyncio.run(main())
