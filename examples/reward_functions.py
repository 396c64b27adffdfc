"""Your own reward functions, one of each kind; `docs/rules.md` says what a parameter gets. From the repository's root:

REWARD_FUNCTIONS=examples/reward_functions.py python -m rewardstack_rules.run_reward_server --reward-type keywords
"""

from __future__ import annotations

from typing import Any

from rewardstack_rules import Unscored, reward_function


@reward_function(range=(0.0, 1.0))
def keywords(response: str, reference: str) -> float:
    """The share of the reference's keywords, which commas separate, that occur in the response."""
    wanted = [word.strip().lower() for word in reference.split(",") if word.strip()]
    if not wanted:
        raise Unscored("the reference holds no keywords")
    return sum(word in response.lower() for word in wanted) / len(wanted)


@reward_function(name="concise", range=(0.0, 1.0))
def full_marks_up_to_a_limit(response: str, reference: str | None = None, max_words: int = 100) -> dict[str, float]:
    """1 up to `extra_info["max_words"]` words, less beyond; tells the number of words beside the score."""
    words = len(response.split())
    return {"score": min(1.0, max_words / max(words, 1)), "words": words}


@reward_function
def shares_a_word_with_the_prompt(
    prompts: list[str], responses: list[str], golden_responses: list[str] | None = None
) -> list[float]:
    """1 for a response that shares a word with its prompt: the shape of Align-Anything's reward functions."""
    pairs = zip(prompts, responses, strict=True)
    return [float(bool(set(prompt.lower().split()) & set(response.lower().split()))) for prompt, response in pairs]


@reward_function(range=(0.0, 1.0))
def short_enough(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None
) -> dict[str, float]:
    """1 for a response that holds the reference and is not too long: the shape of verl's reward functions."""
    limit = (extra_info or {}).get("max_characters", 2000)
    return {"score": float(ground_truth in solution_str and len(solution_str) <= limit), "length": len(solution_str)}


@reward_function
def has_answer_tags(completions: list[str], **kwargs: Any) -> list[float]:
    """1 for a completion with answer tags: the shape of TRL's reward functions."""
    return [float("<answer>" in text and "</answer>" in text) for text in completions]
