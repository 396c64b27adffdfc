"""Rules (reward functions with their properties), and the registry of a server's rules by name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.core.misspellings import did_you_mean
from rewardstack.errors import RouteError, UnknownSourceError
from rewardstack_rules.functions.binding import Evaluate
from rewardstack_rules.functions.verifier import Verifier

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """One reward function.

    Args:
        name: the function's name in `data_source` and `reward_type`.
        evaluate: the function, with its parameters bound.
        fingerprint: a version or hash of everything that the function's values depend on; part of cache keys.
        needs_reference: whether a sample without a reference is unscored.
        fields: the fields of `extra_info` that the function reads; `*` for all (see `BoundFunction.fields`).
        field_parameters: the fields of `extra_info` that are parameters of the function. If a sample has a field whose
            name misspells one of them, the reason of its score has a hint.
        range: the lowest and the highest value that the function returns.
        isolated: whether the function runs in a process that can be killed.
        confined: whether the process of an isolated function is confined: it can read only code, and cannot use the
            network, start programs or write files. For a custom function, REWARD_FUNCTIONS_FILES and
            REWARD_FUNCTIONS_ALLOW can permit more.
        is_custom: whether this is a custom function, not a built-in one.
        runs_programs: whether the function runs the policy's programs.
        verifier: the rule as a `Verifier`; None if the rule does not use the math verifier.
        read_out: returns what the rule extracts from a sample, as a dict of named values, to explain a score. It is
            called with the arguments of `evaluate`. None if the rule has no such function.
    """

    name: str
    evaluate: Evaluate
    fingerprint: str
    needs_reference: bool = True
    fields: tuple[str, ...] = ()
    field_parameters: tuple[str, ...] = ()
    range: tuple[float, float] = (-math.inf, math.inf)
    isolated: bool = True
    confined: bool = True
    is_custom: bool = False
    runs_programs: bool = False
    verifier: Verifier | None = None
    read_out: Callable[[str, Sequence[str], Mapping[str, Any]], dict[str, Any]] | None = None


class Registry:
    """Rules by name, in the order in which they were added."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}

    def add(self, rule: Rule) -> None:
        """Add a rule.

        Raises:
            RouteError: the rule's name is malformed or already used.
        """
        if not NAME.match(rule.name):
            raise RouteError(f"{rule.name!r} cannot name a reward function; use up to 64 letters, digits, _ . -")
        if rule.name in self._rules:
            remedy = "rename one" if self._rules[rule.name].is_custom else "one is built-in: rename yours"
            raise RouteError(f"there are two reward functions named {rule.name!r}; {remedy} (taken: {self._known()})")
        self._rules[rule.name] = rule

    def get(self, name: str) -> Rule:
        """Return the rule of that name.

        Raises:
            UnknownSourceError: no rule has this name; the message lists the known names.
        """
        rule = self._rules.get(name)
        if rule is None:
            meant = did_you_mean(name, self._rules)
            raise UnknownSourceError(
                f"no reward function is named {name!r}; {meant}available: {self._known()}; "
                "set REWARD_FUNCTIONS to the file of your own functions",
                "data_source",
            )
        return rule

    def __contains__(self, name: object) -> bool:
        return name in self._rules

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def _known(self) -> str:
        return ", ".join(sorted(self._rules))
