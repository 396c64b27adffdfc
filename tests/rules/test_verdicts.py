"""The memory of verdicts: they are facts, and as many are kept as there is room for."""

from __future__ import annotations

from rewardstack_rules.scoring.verdict_cache import MAX_QUESTION, Verdicts
from rewardstack_verifier.question import Question, Ruling


def question(answer: str = "\\sqrt{8}", reference: str = "2\\sqrt{2}") -> Question:
    """A question."""
    return Question(answer, (reference,))


def test_recalled() -> None:
    """What was kept is known, for this question and no other."""
    verdicts = Verdicts()

    verdicts.keep(question(), Ruling(True))

    assert (verdicts.recall(question()), verdicts.recall(question("1"))) == (Ruling(True), None)


def test_bounded() -> None:
    """It holds so many verdicts, forgets those not asked for, and keeps no question that is long."""
    verdicts = Verdicts(size=2)
    long = question(reference="x" * (MAX_QUESTION + 1))

    for asked in (question("1"), question("2")):
        verdicts.keep(asked, Ruling(True))
    verdicts.recall(question("1"))
    for asked in (question("3"), long):
        verdicts.keep(asked, Ruling(True))

    known = [verdicts.recall(asked) is not None for asked in (question("1"), question("2"), question("3"), long)]
    assert known == [True, False, True, False]
