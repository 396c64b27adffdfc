"""The LLM judge: a chat model behind an OpenAI-compatible API, such as vLLM's, that gives a verdict on a candidate."""

from rewardstack.scorers.judge.groups import GroupJudge, group_name
from rewardstack.scorers.judge.named import BELOW, Named, check_named
from rewardstack.scorers.judge.scorer import Judge, check_addresses

__all__ = ["BELOW", "GroupJudge", "Judge", "Named", "check_addresses", "check_named", "group_name"]
