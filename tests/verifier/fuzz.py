"""Mathematics at length: `python -m tests.verifier.fuzz` prints verdicts that flip, and what is taken for equal.

Each case's answer and reference is written in every way of `WRITINGS`; numbers and functions that differ by very little
are compared; answers and references of different cases are, at random. Cut and mixed tokens of the cases must raise
nothing. Exits with 1 where a bound is not met.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from rewardstack_verifier import verify
from rewardstack_verifier.comparison.compare import compare
from rewardstack_verifier.question import Question, ask
from rewardstack_verifier.verification import decide
from tests.verifier.writings import WRITINGS

CASES = [
    case
    for path in sorted((Path(__file__).parents[1] / "cases" / "mathematics").glob("*.json"))
    for case in json.loads(path.read_text())
]
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[A-Za-z]+|\d+|\s+|.", re.DOTALL)
LONGEST = 300
"""Of the responses that are mutated."""
MOST_FLIPS = 0.001
"""Of the verdicts."""
Flip = tuple[str, Question]


def questions() -> list[Question]:
    """What the cases ask, each once, as far as there is an answer and one reference."""
    asked = [ask(case["response"], [case["reference"]]) for case in CASES]
    own = (one for one in asked if isinstance(one, Question) and one.answer and not one.fault)
    # What ends in half of an escaped space would escape the brace around it.
    own = (one for one in own if not one.answer.endswith("\\"))
    return list(dict.fromkeys(own))


def flips(asked: Iterable[Question]) -> Iterator[Flip | None]:
    """For each question in each way to write its answer, or its reference: the way where the verdict is another."""
    for question in asked:
        right = decide(question).right
        answer, [reference] = question.answer, question.expected
        for name, write in WRITINGS.items():
            for one in (Question(write(answer), (reference,)), Question(answer, (write(reference),))):
                if one != question:
                    yield None if decide(one).right is right else (name, one)


def near_misses(random: Random, count: int) -> Iterator[tuple[str, str]]:
    """Expressions that differ by 10^-k, by one in a large integer, by a high frequency, or on half the line."""
    for _ in range(count):
        number = random.choice(
            [f"\\sqrt{{{random.randint(2, 99)}}}", f"\\frac{{{random.randint(1, 99)}}}{{7}}", "\\pi", "e"]
        )
        term = random.choice(["\\sin x", "x^2", "\\sqrt{x^2+1}", "e^{x}", "\\ln(x^2+1)"])
        large, k = random.randint(10**30, 10**60), random.randint(7, 300)
        yield random.choice(
            [
                (f"{number}+10^{{-{k}}}", number),
                (f"{term}+10^{{-{k}}}", term),
                (f"{number}(1+10^{{-{k}}})", number),
                (str(large + 1), str(large)),
                (f"{large + 1}x", f"{large}x"),
                (f"{large + 1}{term}", f"{large}{term}"),
                (f"{term}+\\sin({random.randint(10, 10**6)}\\pi x)", term),
                (f"{term}+|x|-x", term),
                (f"{term}+\\sqrt{{x^2}}+x", term),
                (f"\\sqrt{{1+\\sin {2 * k}x}}", f"\\sin {k}x+\\cos {k}x"),
                (f"\\sqrt{{\\sin^2 {k}x}}", f"\\sin {k}x"),
                (f"\\arcsin(\\sin {k}x)", f"{k}x"),
            ]
        )


def mutations(random: Random, count: int) -> Iterator[tuple[str, str]]:
    """Responses and references of cases, one of them with up to three tokens removed, repeated, replaced or cut off."""
    short = [case for case in CASES if len(case["response"]) < LONGEST]
    tokens = [token for case in short for token in TOKEN.findall(case["reference"])]
    for _ in range(count):
        case = random.choice(short)
        response, reference = case["response"], case["reference"]
        answer = mutated(random, reference, tokens)
        yield random.choice(
            [
                (f"\\boxed{{{answer}}}", reference),
                (f"The answer is ${answer}$.", reference),
                (mutated(random, response, tokens), reference),
                (response, answer),
            ]
        )


def mutated(random: Random, text: str, others: list[str]) -> str:
    """The text with one to three changes of its tokens."""
    tokens = TOKEN.findall(text)
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(tokens) + 1)
        ways = (tokens[:at], tokens[at:], tokens[:at] + tokens[at + 1 :], tokens[: at + 1] + tokens[at:])
        tokens = random.choice([*ways, [*tokens[:at], random.choice(others), *tokens[at + random.randint(0, 1) :]]])
    return "".join(tokens)


def errors(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """What `verify` raises, with the pair."""
    for response, reference in pairs:
        try:
            verify(response, [reference])
        except Exception as error:  # noqa: BLE001 - to find any
            yield f"{error!r}: {response!r}, {reference!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=None, help="how many of the cases are rewritten; all")
    parser.add_argument("--near", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=20_000, help="answers and references of different cases")
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=18)
    arguments = parser.parse_args()
    random, asked = Random(arguments.seed), questions()
    found = list(flips(random.sample(asked, arguments.questions or len(asked))))
    flipped = [flip for flip in found if flip]
    near = [pair for pair in near_misses(random, arguments.near) if compare(*pair) is not False]
    mixed = [(random.choice(asked).answer, random.choice(asked).expected[0]) for _ in range(arguments.pairs)]
    equal = {pair for pair in mixed if compare(*pair)}
    print(f"rewritten           {len(found):>9,}  in {len(WRITINGS)} ways, verdicts that flip: {len(flipped)}")
    print(f"nearly equal        {arguments.near:>9,}  taken for equal: {len(near)}")
    print(f"random pairs        {arguments.pairs:>9,}  taken for equal: {len(equal)} different ones, no exception")
    raised = [*errors(mutations(random, arguments.mutations))]
    print(f"mutations           {arguments.mutations:>9,}  that raise: {len(raised)}")
    for line in raised[:20]:
        print(f"  {line}")
    for name, count in Counter(name for name, _ in flipped).most_common():
        print(f"  {name}: {count}")
    if len(flipped) > MOST_FLIPS * len(found) or near or raised:
        sys.exit(1)


if __name__ == "__main__":
    main()
