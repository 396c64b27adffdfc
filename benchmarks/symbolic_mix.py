"""Generate samples of algebra, calculus and differential equations, a third of them correct.

mpmath checks at several points that correct answers equal the reference and wrong answers do not. An answer with free
constants (C, D) is a family of functions. Two families are equal if the functions that the constants multiply have the
same span, and the difference of the constant-free parts is in this span.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]

from benchmarks.formulas import perturb, value
from benchmarks.latex import any_style, write
from benchmarks.mix import Sample, reasoning
from benchmarks.problem import Form, Problem
from benchmarks.symbolic_problems import KINDS

DIGITS = 40
EQUAL, UNEQUAL = mpmath.mpf("1e-20"), mpmath.mpf("1e-8")
"""Residues below the first count as equal, above the second as unequal; pairs in between are discarded."""
POINTS = 7
NUMBERS = range(2, 10)
SMALL = {"gradient": range(2, 6), "logarithms": range(2, 6)}
"""Smaller ranges of numbers, for kinds that use them as exponents."""
OUTCOMES = ("equal", "wrong by one number", "another problem's")
LENGTHS = (100, 600)
"""Minimum and maximum number of characters of a response."""
MARK = "The final answer is $\\boxed{{{}}}$."
CONSTANTS = (
    (("C", "D"), ("C", "D"), ("c", "d"), ("K", "L")),
    (("C_1", "C_2"), ("C_1", "C_2"), ("c_1", "c_2"), ("A", "B")),
)
"""Names of C and D: pairs for answers with at most one constant, and pairs for answers with two."""


class Meaning(NamedTuple):
    """Values of an answer at `POINTS` points, regardless of how the answer is written.

    Args:
        fixed: values with all constants 0.
        multiplied: for each constant, the values of the function that it multiplies.
    """

    fixed: tuple[Any, ...]
    multiplied: tuple[tuple[Any, ...], ...]


def make_samples(count: int, seed: int) -> Iterator[Sample]:
    """Generate samples with each outcome in turn; the same seed gives the same samples.

    Args:
        count: number of samples.
        seed: seed of the random generator.
    """
    return islice(_samples(random.Random(seed)), count)


def _samples(rng: random.Random) -> Iterator[Sample]:
    with mpmath.workdps(DIGITS):
        while True:
            for outcome in OUTCOMES:
                yield _sample(rng, outcome)


def _sample(rng: random.Random, outcome: str) -> Sample:
    while True:
        kind = rng.choice(list(KINDS))
        problem = _problem(rng, kind)
        reference = rng.choice(problem.forms)
        meant = meaning(problem, reference)
        answered, answer = _answer(rng, kind, problem, outcome)
        if meant and are_equal(meant, meaning(answered, answer)) is (outcome == OUTCOMES[0]):
            constants = len(meant.multiplied) - problem.is_equation
            expected, written = _text(rng, reference, constants), _text(rng, answer, constants)
            length = rng.randint(*LENGTHS)
            response = reasoning(rng, length, written) + MARK.format(written)
            return Sample(response, expected, outcome == OUTCOMES[0], kind, outcome)


def _problem(rng: random.Random, kind: str) -> Problem:
    make, signs = KINDS[kind]
    sizes = rng.sample(SMALL.get(kind, NUMBERS), len(signs))
    return make(*(size * (1 if sign == "+" else rng.choice((1, -1))) for size, sign in zip(sizes, signs, strict=True)))


def _answer(rng: random.Random, kind: str, problem: Problem, outcome: str) -> tuple[Problem, Form]:
    """Return an answer with this outcome, and the problem that it belongs to."""
    if outcome == OUTCOMES[2]:
        problem = _problem(rng, rng.choice((kind, rng.choice(list(KINDS)))))
    form = rng.choice(problem.forms)
    if outcome != OUTCOMES[1]:
        return problem, form
    while True:
        at = rng.randrange(len(form.parts))
        part = perturb(form.parts[at], rng)
        if part is not None:
            return problem, form._replace(parts=(*form.parts[:at], part, *form.parts[at + 1 :]))


def _text(rng: random.Random, form: Form, constants: int) -> str:
    names = rng.choice(CONSTANTS[constants > 1])
    style = any_style(rng, dict(zip("CD", names, strict=True)))
    return form.layout % tuple(write(part, style) for part in form.parts)


def meaning(problem: Problem, form: Form) -> Meaning | None:
    """Return the values of a form at the points; None if it is undefined at one of them."""
    try:
        fixed = _values(problem, form, {})
        moved = [_values(problem, form, {name: mpmath.mpf(1)}) for name in "CD"]
    except (ZeroDivisionError, ValueError):  # divided by 0, a pole of the factorial
        return None
    multiplied = [tuple(one - other for one, other in zip(values, fixed, strict=True)) for values in moved]
    used = [values for values in multiplied if any(values)]
    if problem.is_equation:  # an equation stays true if both sides are multiplied by a number
        return Meaning(tuple(0 * one for one in fixed), (fixed, *used))
    return Meaning(fixed, tuple(used))


def _values(problem: Problem, form: Form, constants: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(found for at in range(POINTS) for found in _values_at(problem, form, {**_point(at), **constants}))


def _values_at(problem: Problem, form: Form, names: Mapping[str, Any]) -> list[Any]:
    found = [value(part, names) for part in form.parts]
    if problem.is_equation:
        return [found[0] - found[1]]
    return [found[0] * one for one in found[1:]] if form.is_scaled else found


def _point(at: int) -> dict[str, Any]:
    """Return values for the names: irrational numbers for variables, an integer for n, and 0 for constants."""
    of = {name: mpmath.sqrt(prime + 4 * at * at) / 7 for name, prime in (("x", 2), ("y", 3), ("t", 5), ("s", 7))}
    zero = mpmath.mpf(0)
    return {**of, "lambda": of["s"], "n": mpmath.mpf(at + 1), "e": mpmath.e, "pi": mpmath.pi, "C": zero, "D": zero}


def are_equal(one: Meaning | None, other: Meaning | None) -> bool | None:
    """Return whether two forms are equal at the points; None if it is unclear or one is undefined."""
    if one is None or other is None:
        return None
    if len(one.fixed) != len(other.fixed) or len(one.multiplied) != len(other.multiplied):
        return False
    apart = tuple(mine - theirs for mine, theirs in zip(one.fixed, other.fixed, strict=True))
    scale = max(map(abs, (*one.fixed, *other.fixed)))
    residues = [_residue(apart, one.multiplied, scale)]
    residues += [_residue(values, one.multiplied, max(map(abs, values))) for values in other.multiplied]
    return False if max(residues) > UNEQUAL else True if max(residues) < EQUAL else None


def _residue(values: Sequence[Any], span: Sequence[Sequence[Any]], scale: Any) -> Any:
    """Return the size of the part of a vector that is outside the span of others, divided by `scale`."""
    left = list(values)
    basis: list[list[Any]] = []
    for vector in (*span, None):
        rest = left if vector is None else list(vector)
        for of in basis:
            share = mpmath.fsum(a * mpmath.conj(b) for a, b in zip(rest, of, strict=True))
            rest = [a - share * b for a, b in zip(rest, of, strict=True)]
        if vector is None:
            return max(map(abs, rest)) / (scale or 1)
        length = mpmath.sqrt(mpmath.fsum(abs(a) ** 2 for a in rest))
        basis.append([a / length for a in rest])
