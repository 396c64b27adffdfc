"""The reward functions of a server, by name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.core.near_misses import suggestion
from rewardstack.errors import RouteError, UnknownSourceError
from rewardstack_rules.functions.binding import RewardFunction
from rewardstack_rules.functions.verifier import Verifier

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """One reward function.

    Args:
        name: its name in `data_source` and `reward_type`.
        evaluate: the function, as a `binding.RewardFunction`.
        fingerprint: `VERDICT_VERSION` of a built-in function, else a hash of everything that its values depend on.
        needs_reference: whether a sample without a reference is unscored.
        fields: the fields of `extra_info` that it reads; `("*",)` for all.
        named: the fields of `extra_info` that are parameters of the function.
        range: its lowest and its highest value.
        isolated: whether it runs in a process that can be killed.
        confined: whether that process has no network, starts no program, writes no file and reads only code.
        own: whether it is the user's, not a built-in one.
        programs: whether it runs the policy's programs.
        verifier: the rule as a `Verifier`, if its value depends only on a verdict about the answer.
        read_out: returns what it reads in a response of limited length and in each reference, by name, for an
            explanation; None if it cannot.
    """

    name: str
    evaluate: RewardFunction
    fingerprint: str
    needs_reference: bool = True
    fields: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    range: tuple[float, float] = (-math.inf, math.inf)
    isolated: bool = True
    confined: bool = True
    own: bool = False
    programs: bool = False
    verifier: Verifier | None = None
    read_out: Callable[[str, Sequence[str], Mapping[str, Any]], dict[str, Any]] | None = None


class Registry:
    """Rules by name, in the order in which they were added."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}

    def add(self, rule: Rule) -> None:
        """Add a rule.

        Raises:
            RouteError: the name is malformed or already used.
        """
        if not NAME.match(rule.name):
            raise RouteError(f"{rule.name!r} cannot name a reward function; use up to 64 letters, digits, _ . -")
        if rule.name in self._rules:
            raise RouteError(f"there are two reward functions named {rule.name!r}; rename one (used: {self._known()})")
        self._rules[rule.name] = rule

    def get(self, name: str) -> Rule:
        """Return the rule of that name.

        Raises:
            UnknownSourceError: there is none; the message lists the known names.
        """
        rule = self._rules.get(name)
        if rule is None:
            meant = suggestion(name, self._rules)
            raise UnknownSourceError(
                f"no reward function is named {name!r}; {meant}known are: {self._known()}", "data_source"
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
