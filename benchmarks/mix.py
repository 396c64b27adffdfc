"""Generate samples like those of GSM8K and MATH, with known labels.

Each problem has a reference, equal answers in other forms, and wrong answers. Each of its eight different responses
ends with one of these answers, or has no answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

RESPONSES = 8
"""Responses per problem."""
LENGTHS = (200, 2400)
"""Minimum and maximum number of characters of a response."""
OUTCOMES = {"same form": 55, "other form": 12, "wrong": 28, "no answer": 5}
"""Kinds of responses, in percent."""
MISTAKES = 4
"""Different wrong answers per problem."""

SENTENCES = (
    "First she buys {a} boxes with {b} pencils each, which makes {a} * {b} = {c} pencils.\n",
    "In the second week he works {a} hours for ${b} an hour, so he earns {a} * {b} = ${c} more than before.\n",
    "We know that $x + {a} = {b}$ and therefore $2x = 2({b} - {a})$, which is what the problem tells us.\n",
    "Let us call the number of all possible outcomes $N$ and note that $N = {a} \\cdot {b} = {c}$ at this point.\n",
    "Notice that \\(f({a}) = {b}\\), hence the line through these points has the slope we are looking for.\n",
    "That leaves <<{a}*{b}={c}>>{c} of them for the other {a} children to share among themselves.\n",
    "Since the triangle is isosceles, both angles are equal, and by the law of cosines nothing else is possible here. ",
    "Hmm, wait, let me check this step once more before I go on, because it is easy to make a mistake. ",
    "Substituting this into the first equation and simplifying both sides gives us what we wanted to show. ",
    "By symmetry the remaining cases are the same, so it is enough to consider one of them and multiply. ",
    "\\[ {a}x^2 - {b}x + {c} = 0 \\]\nThe discriminant tells us how many solutions there are.\n",
)
UNDECIDED = "I do not know how to go on from here, so I have to leave this open"
MARKS = ("The final answer is $\\boxed{{{}}}$.", "So we get\n\n\\[ \\boxed{{{}}} \\]", "Therefore, \\boxed{{{}}}.")


class Sample(NamedTuple):
    """A response with its label.

    Args:
        response: text that a policy could have written.
        reference: the correct answer.
        right: whether the response is correct.
        kind: kind of problem, such as `fraction`.
        outcome: one of `OUTCOMES`.
    """

    response: str
    reference: str
    right: bool
    kind: str
    outcome: str


class Problem(NamedTuple):
    """A problem with correct and wrong answers.

    Args:
        reference: the correct answer.
        others: the same answer in other forms.
        mistakes: wrong answers.
    """

    reference: str
    others: tuple[str, ...]
    mistakes: tuple[str, ...]


def make_samples(count: int, seed: int) -> Iterator[Sample]:
    """Generate samples, `RESPONSES` per problem; the same seed gives the same samples.

    Args:
        count: number of samples.
        seed: seed of the random generator.
    """
    rng = random.Random(seed)
    kinds, weights = list(KINDS), [share for share, _ in KINDS.values()]
    made = 0
    while made < count:
        kind = rng.choices(kinds, weights)[0]
        problem = KINDS[kind][1](rng)
        for _ in range(min(RESPONSES, count - made)):
            made += 1
            outcome = rng.choices(list(OUTCOMES), list(OUTCOMES.values()))[0]
            yield Sample(
                _response(rng, kind, problem, outcome), problem.reference, outcome.endswith("form"), kind, outcome
            )


def _response(rng: random.Random, kind: str, problem: Problem, outcome: str) -> str:
    length = rng.randint(*LENGTHS)
    if outcome == "no answer":
        return reasoning(rng, length - len(UNDECIDED), problem.reference) + UNDECIDED + "." * rng.randint(1, 9)
    answer = {"same form": (problem.reference,), "other form": problem.others, "wrong": problem.mistakes}[outcome]
    written = rng.choice(answer)
    mark = "#### {}" if kind == "integer" and rng.random() < 0.5 else rng.choice(MARKS)
    end = mark.format(written)
    return reasoning(rng, length - len(end), problem.reference) + end


def reasoning(rng: random.Random, length: int, answer: str) -> str:
    """Return about `length` characters of random reasoning.

    None of its random numbers is the answer, but some sentences contain a fixed 0 or 2.
    """
    parts: list[str] = []
    left = length
    while left > 0:
        a, b = rng.randint(2, 9999), rng.randint(2, 9999)
        if answer in (str(a), str(b), str(a * b)):
            continue
        parts.append(rng.choice(SENTENCES).format(a=a, b=b, c=a * b))
        left -= len(parts[-1])
    return "".join(parts)[:length].rsplit(" ", 1)[0] + "\n"


def _integer(rng: random.Random) -> Problem:
    n = rng.choice((rng.randint(3, 99), rng.randint(100, 999), rng.randint(1000, 99999)))
    others = (f"{n}.00", f"{n:,}" if n > 999 else f"{n}.0", f"\\${n}", f"x = {n}", f"{n}\\text{{ cm}}")
    return Problem(str(n), others, _mistakes(rng, lambda by: str(n + by)))


def _fraction(rng: random.Random) -> Problem:
    bottom = rng.randint(3, 40)
    top = rng.randint(1, 3) * bottom + 1
    factor = rng.randint(2, 9)
    others = (f"\\dfrac{{{top}}}{{{bottom}}}", f"{top}/{bottom}", f"\\frac{{{top * factor}}}{{{bottom * factor}}}")
    wrong = _mistakes(rng, lambda by: f"\\frac{{{top + by * bottom}}}{{{bottom}}}")
    return Problem(f"\\frac{{{top}}}{{{bottom}}}", others, wrong)


def _root(rng: random.Random) -> Problem:
    of, times = rng.choice((2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19)), rng.randint(2, 40)
    others = (
        f"\\sqrt{{{of * times * times}}}",
        f"\\sqrt{{{of}}} \\cdot {times}",
        f"\\frac{{{2 * times}\\sqrt{{{of}}}}}{{2}}",
    )
    return Problem(f"{times}\\sqrt{{{of}}}", others, _mistakes(rng, lambda by: f"{times + by}\\sqrt{{{of}}}"))


def _interval(rng: random.Random) -> Problem:
    low = rng.randint(-50, 50)
    high = low + rng.randint(20, 60)
    others = (f"\\left[{low}, {high}\\right)", f"{low} \\le x < {high}", f"[{2 * low}/2, {high})")
    return Problem(f"[{low},{high})", others, _mistakes(rng, lambda by: f"[{low},{high + by})"))


def _set(rng: random.Random) -> Problem:
    members = rng.sample(range(-60, 60), 3)
    others = (_set_of(members[::-1]), _set_of(members[1:] + members[:1]), ", ".join(map(str, members)))
    wrong = _mistakes(rng, lambda by: _set_of([*members[:2], members[2] + by * 200]))
    return Problem(_set_of(members), others, wrong)


def _set_of(members: list[int]) -> str:
    return "\\{" + ", ".join(map(str, members)) + "\\}"


def _tuple(rng: random.Random) -> Problem:
    a, b = rng.randint(-60, 60), rng.randint(2, 60)
    others = (
        f"\\left( {a}, \\frac{{{b}}}{{7}} \\right)",
        f"({a}.0, {b}/7)",
        f"\\left({a},\\dfrac{{{2 * b}}}{{14}}\\right)",
    )
    return Problem(f"({a}, \\frac{{{b}}}{{7}})", others, _mistakes(rng, lambda by: f"({a + by}, \\frac{{{b}}}{{7}})"))


def _matrix(rng: random.Random) -> Problem:
    a, b, c, d = (rng.randint(-30, 30) for _ in range(4))
    others = (
        _rows("bmatrix", a, b, c, d),
        _rows("pmatrix", f"{2 * a}/2", b, c, d),
        _rows("pmatrix", a, b, f"{c}.0", d),
    )
    return Problem(_rows("pmatrix", a, b, c, d), others, _mistakes(rng, lambda by: _rows("pmatrix", a, b, c, d + by)))


def _rows(kind: str, *of: object) -> str:
    return "\\begin{{{0}}} {1} & {2} \\\\ {3} & {4} \\end{{{0}}}".format(kind, *of)


def _polynomial(rng: random.Random) -> Problem:
    a, b = rng.sample(range(2, 60), 2)
    others = (f"(x+{a})(x+{b})", f"x^2 + {a * b} + {a + b}x", f"x(x+{a + b}) + {a * b}")
    return Problem(f"x^2+{a + b}x+{a * b}", others, _mistakes(rng, lambda by: f"x^2+{a + b}x+{a * b + by}"))


def _text(rng: random.Random) -> Problem:
    words = ["Monday", "Evelyn", "parallelogram", "hyperbola", "isosceles", "Wednesday", "north", "ellipse", "green"]
    answer, *wrong = rng.sample(words, 1 + MISTAKES)
    return Problem(f"\\text{{{answer}}}", (answer, f"\\textbf{{{answer}}}", answer.lower()), tuple(wrong))


def _mistakes(rng: random.Random, write: Callable[[int], str]) -> tuple[str, ...]:
    """Return `MISTAKES` different answers, each written with a different offset from 1 to 19."""
    return tuple(write(by) for by in rng.sample(range(1, 20), MISTAKES))


KINDS: dict[str, tuple[int, Callable[[random.Random], Problem]]] = {
    "integer": (46, _integer),
    "fraction": (12, _fraction),
    "root": (9, _root),
    "tuple": (8, _tuple),
    "polynomial": (8, _polynomial),
    "interval": (5, _interval),
    "set": (5, _set),
    "matrix": (4, _matrix),
    "text": (3, _text),
}
"""Percentage of problems and generator, by kind."""
