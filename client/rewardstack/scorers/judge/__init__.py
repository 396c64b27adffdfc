"""The LLM judge: a chat model behind vLLM's OpenAI-compatible interface is shown the candidate and gives a verdict."""

from rewardstack.scorers.judge.named import BELOW, Named, check_named
from rewardstack.scorers.judge.scorer import Judge, check_addresses

__all__ = ["BELOW", "Judge", "Named", "check_addresses", "check_named"]
