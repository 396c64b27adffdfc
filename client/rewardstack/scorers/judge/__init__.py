"""Score samples with an LLM judge: a chat model behind an OpenAI-compatible API, such as vLLM's."""

from rewardstack.scorers.judge.groups import GroupJudge, group_name
from rewardstack.scorers.judge.named import NAMED_JUDGES_PATH, JudgeConfig, check_named_judge
from rewardstack.scorers.judge.scorer import Judge, check_urls

__all__ = ["NAMED_JUDGES_PATH", "GroupJudge", "Judge", "JudgeConfig", "check_named_judge", "check_urls", "group_name"]
