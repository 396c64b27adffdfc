"""Evaluate a sample by a rule. Isolated processes call `execute` for each task; `evaluate` runs in any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rewardstack.cause import Cause
from rewardstack.errors import ConfigError
from rewardstack.score import NO_REFERENCE
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.registry import Registry, Rule
from rewardstack_rules.functions.results import ResultError
from rewardstack_rules.scoring.output import capture, replace_streams
from rewardstack_rules.settings import RuleSettings
from rewardstack_verifier.question import Question
from rewardstack_verifier.transcript import Turn
from rewardstack_verifier.verification import decide, decide_with_trace
from rewardstack_verifier.verification import warm_up as warm_up_verifier

OTHER_VERSION = (
    "the isolated process and the server loaded different versions of the reward function or of a library; restart or "
    "reload the server"
)


def make_task(rule: Rule, solution: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the argument of `execute` for a sample."""
    return {
        "rule": rule.name,
        "fingerprint": rule.fingerprint,
        "solution": solution,
        "references": references,
        "extra": extra,
    }


def execute(task: Mapping[str, Any]) -> dict[str, Any]:
    """Run a task. Isolated processes call this function.

    A task has either one sample, which a rule evaluates, or several questions, which the math verifier decides. A
    `Question` has an answer and the references to compare it with.

    Args:
        task: a dict with the keys `rule` (name of the rule) and `fingerprint` (of the rule).
            A sample adds `solution` (last turn of the response), `references` (list of strings) and `extra` (mapping).
            Questions add `questions` (the fields of each `Question`), and may add `with_trace`: if it is true, only the
            first question is decided, and its comparisons are returned.

    Returns:
        A dict of JSON types.
        For a sample, the fields of `Outcome.as_dict`, or `error` and `message` if the function did not return a score.
        If the function printed something, the dict also has `output`.
        For questions, `verdicts`, a list with the fields of each `Ruling`. With a trace, also `comparisons`.

    Raises:
        ConfigError: this process and the caller have different versions of the rule. Without this error, the caller
            would cache the value under the wrong fingerprint.
        Exception: anything that the reward function raises.
    """
    rule = registry().get(task["rule"])
    if rule.fingerprint != task["fingerprint"]:
        raise ConfigError(OTHER_VERSION)
    if "questions" in task:
        questions = (Question(answer, tuple(expected), *rest) for answer, expected, *rest in task["questions"])
        if task.get("with_trace"):
            verdict, comparisons = decide_with_trace(next(questions))
            return {"verdicts": [verdict._asdict()], "comparisons": comparisons}
        return {"verdicts": [decide(question)._asdict() for question in questions]}
    with capture() as output:
        try:
            result = evaluate(rule, Turn(task["solution"]), task["references"], task["extra"]).as_dict()
        except ResultError as error:
            result = {"error": "returned", "message": str(error)}
    return {**result, "output": output.text} if output.text else result


def evaluate(rule: Rule, solution: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
    """Return the outcome of `rule` for a sample; unscored if a required reference is missing."""
    if rule.needs_reference and not references:
        return Outcome(None, NO_REFERENCE, cause=Cause.NO_REFERENCE)
    return rule.evaluate(solution, references, extra)


def warm_up() -> None:
    """Load the rules and the verifier in the zygote, so that the children that it forks need not load them again."""
    replace_streams()
    registry()
    warm_up_verifier()


@lru_cache(maxsize=1)
def registry() -> Registry:
    """Return the rules of this process. The first call loads them, with settings from the environment."""
    return load_registry(RuleSettings.from_env().function_files)
