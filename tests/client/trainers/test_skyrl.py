"""What `rewardstack.trainers.skyrl` makes of a row, with empty classes for those of skyrl-gym that it derives from."""

from __future__ import annotations

from typing import Any

import pytest

PROMPT = [{"role": "user", "content": "What is 6 * 7?"}]


@pytest.mark.parametrize(
    ("extra", "known"),
    [
        (None, {"prompt_template": "binary", "prompt": "What is 6 * 7?"}),
        ({"prompt_template": None, "question": None}, {"prompt_template": "binary", "prompt": "What is 6 * 7?"}),
        ({"prompt_template": "detailed", "question": "6 * 7?"}, {"prompt_template": "detailed", "question": "6 * 7?"}),
    ],
    ids=["none", "null", "own"],
)
def test_options(extra: Any, known: dict[str, Any], skyrl: Any) -> None:
    """A row's `extra_info` precedes the options and the prompt, but for its null fields, which parquet adds."""
    row = {"data_source": "llm_judge_remote", "extra_info": extra}
    env = skyrl.RewardstackEnv({}, row, options={"prompt_template": "binary"})
    assert env.init(PROMPT) == (PROMPT, {})
    assert env._extra == known
