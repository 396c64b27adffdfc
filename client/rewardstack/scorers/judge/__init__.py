"""The LLM judge: a chat model behind vLLM's OpenAI-compatible interface is shown the candidate and gives a verdict."""

from rewardstack.scorers.judge.options import FIELDS
from rewardstack.scorers.judge.scorer import Judge, check_judges

__all__ = ["FIELDS", "Judge", "check_judges"]
