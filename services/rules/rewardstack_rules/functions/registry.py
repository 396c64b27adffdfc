"""The reward functions that a server knows, by name."""

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
        name: what a `data_source` or `reward_type` calls it.
        evaluate: the function, in the one shape of `binding.RewardFunction`.
        fingerprint: `VERDICT_VERSION` of a built-in function, else a hash of all that its values depend on.
        needs_reference: whether a sample without a reference is unscored.
        fields: what it reads of `extra_info`; `("*",)` for all of it.
        named: the fields of `extra_info` that are parameters of its own.
        range: the lowest and the highest value it gives.
        isolated: whether it runs in a process that can be killed.
        confined: whether that process has no network, starts no program, writes no file and reads only code.
        own: whether it is the user's, and not one that comes with the server.
        programs: whether it runs the policy's programs.
        verifier: the rule in two halves, where it only asks whether an answer is right.
        read_out: what it reads in a response of a bounded length, and in each reference, by name, for an explanation;
            None where it does not say.
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
        """Adds a rule.

        Raises:
            RouteError: the name is malformed, or taken.
        """
        if not NAME.match(rule.name):
            raise RouteError(f"{rule.name!r} cannot name a reward function; use up to 64 letters, digits, _ . -")
        if rule.name in self._rules:
            raise RouteError(f"there are two reward functions named {rule.name!r}; taken are: {self._known()}")
        self._rules[rule.name] = rule

    def get(self, name: str) -> Rule:
        """The rule of that name.

        Raises:
            UnknownSourceError: there is none; the message lists those there are.
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
