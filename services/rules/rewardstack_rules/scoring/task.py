"""One sample, one rule: what runs inside an isolated process, and, for rules that need no isolation, in the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rewardstack.errors import ConfigError
from rewardstack.score import NO_REFERENCE
from rewardstack_rules.functions.catalogue import load_registry
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.registry import Registry, Rule
from rewardstack_rules.functions.results import ResultError
from rewardstack_rules.scoring.output import captured, replace_streams
from rewardstack_rules.settings import RuleSettings
from rewardstack_verifier.question import Question
from rewardstack_verifier.verification import decide, decide_with_trace


def make_task(rule: Rule, solution: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an isolated process is told of a sample: the argument of `execute`."""
    return {
        "rule": rule.name,
        "fingerprint": rule.fingerprint,
        "solution": solution,
        "references": references,
        "extra": extra,
    }


def execute(task: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluates one sample, or decides the questions that a verifier asks; the entry of isolated processes.

    Args:
        task: `rule` (its name), `fingerprint` (of the rule), and either `solution`, `references` (a list of strings)
            and `extra` (a mapping), or `questions` (the fields of each `Question`), or one of them to be decided
            `with_trace`.

    Returns:
        Of a sample `status` (`ok` or `unscored`), `value`, `reason` and `parts`, or `error` and `message` where the
        function returned no score, and `output`, what the function printed; of questions `verdicts` (`right` and
        `reason` of each), and of one that is decided with a trace its `comparisons` as well, in plain JSON types.

    Raises:
        ConfigError: this process has another version of the rule than the one who asks; its value would be kept
            under the wrong fingerprint.
        Exception: whatever the reward function raised.
    """
    rule = registry().get(task["rule"])
    if rule.fingerprint != task["fingerprint"]:
        raise ConfigError("its source, or a library of its, changed while the server ran; restart or reload the server")
    if "questions" in task:
        asked = (Question(answer, tuple(expected), *rest) for answer, expected, *rest in task["questions"])
        if task.get("with_trace"):
            verdict, comparisons = decide_with_trace(next(asked))
            return {"verdicts": [verdict._asdict()], "comparisons": comparisons}
        return {"verdicts": [decide(question)._asdict() for question in asked]}
    with captured() as output:
        try:
            result = evaluate(rule, task["solution"], task["references"], task["extra"]).as_dict()
        except ResultError as error:
            result = {"error": "returned", "message": str(error)}
    return {**result, "output": output.text} if output.text else result


def evaluate(rule: Rule, solution: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
    """What `rule` makes of a sample; without the reference it needs, the sample is unscored."""
    if rule.needs_reference and not references:
        return Outcome(None, NO_REFERENCE)
    return rule.evaluate(solution, references, extra)


def warm_up() -> None:
    """Loads, before children are forked, what each of them would load anew."""
    # Imported here: the server calls `evaluate` alone, and does without the libraries behind this.
    from rewardstack_verifier.verification import warm_up as warm_up_verifier

    replace_streams()
    registry()
    warm_up_verifier()


@lru_cache(maxsize=1)
def registry() -> Registry:
    """This process's rules, as its environment names them."""
    return load_registry(RuleSettings.from_env().function_files)
