"""Rules that ask whether an answer to a problem of mathematics is right: such a verdict can be had on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.mathematics import Verdict


@dataclass(frozen=True, slots=True)
class Verifier:
    """A rule in two halves, both quick on responses of any kind; between them comes the verdict.

    Args:
        read: the part of a response in which the answer is looked for.
        value: what a verdict on that part makes of the response.
    """

    read: Callable[[str], str]
    value: Callable[[str, Verdict], Outcome]
