"""The built-in reward functions, one file each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from rewardstack_rules.functions.binding import bind
from rewardstack_rules.functions.builtin.code import code_rule
from rewardstack_rules.functions.builtin.exact_match import exact_match
from rewardstack_rules.functions.builtin.example_coding import example_coding
from rewardstack_rules.functions.builtin.example_math import example_math
from rewardstack_rules.functions.builtin.example_safety import example_safety
from rewardstack_rules.functions.builtin.gsm8k import gsm8k
from rewardstack_rules.functions.builtin.gsm8k import read_out as read_out_gsm8k
from rewardstack_rules.functions.builtin.json_schema import json_schema
from rewardstack_rules.functions.builtin.length import length
from rewardstack_rules.functions.builtin.math import VERIFIER as MATH
from rewardstack_rules.functions.builtin.math_verifier import VERIFIER as MATH_VERIFIER
from rewardstack_rules.functions.builtin.multiple_choice import multiple_choice
from rewardstack_rules.functions.builtin.overlong import overlong
from rewardstack_rules.functions.builtin.qa_match import qa_match
from rewardstack_rules.functions.builtin.regex_format import regex_format
from rewardstack_rules.functions.builtin.repetition import repetition
from rewardstack_rules.functions.builtin.structures import grid_match, json_match, list_match
from rewardstack_rules.functions.fingerprint import VERDICT_VERSION
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.functions.verifier import FIELDS
from rewardstack_rules.settings import CodeSettings

VERIFIERS = {"math_verifier": (MATH_VERIFIER, (0.0, 1.5)), "math": (MATH, (0.0, 1.0))}
"""Rules that use the math verifier, each with its range of values. Comparisons that could be slow run in a process that
can be killed."""
REFERENCE_RULES = (gsm8k, multiple_choice, exact_match, qa_match, list_match, grid_match, json_match)
"""Rules that need a reference. Their run time is bounded, so they run in the calling process."""
REFERENCE_FREE_RULES = (length, overlong, repetition, example_math, example_coding, example_safety)
"""Rules that read no reference. They, too, run in the calling process."""
RANGES = {overlong: (-inf, 0.0)}
"""Value ranges by function. The values of a function without an entry are from 0 to 1."""
READ_OUTS = {gsm8k: read_out_gsm8k}
"""For some rules, the function that returns what the rule extracts from a sample, for explanations of scores."""
ISOLATED_RULES = (regex_format, json_schema)
"""Rules that apply a pattern or schema from the request. Matching can take very long, so these rules run in a process
that can be killed."""


def built_in_rules(code: CodeSettings | None = None) -> Iterator[Rule]:
    """Yield the built-in rules.

    Args:
        code: settings for running programs; None if programs are not run here.
    """
    for name, (verifier, values) in VERIFIERS.items():
        yield Rule(name, verifier.evaluate, VERDICT_VERSION, fields=FIELDS, range=values, verifier=verifier)
    yield from (_rule(function, isolated=False) for function in (*REFERENCE_RULES, *REFERENCE_FREE_RULES))
    yield from (_rule(function, isolated=True) for function in ISOLATED_RULES)
    yield code_rule(code)


def _rule(function: Callable[..., Any], *, isolated: bool) -> Rule:
    bound = bind(function)
    return Rule(
        function.__name__,
        bound.evaluate,
        VERDICT_VERSION,
        bound.needs_reference,
        bound.fields,
        range=RANGES.get(function, (0.0, 1.0)),
        isolated=isolated,
        read_out=READ_OUTS.get(function),
    )
