"""Rules whose value depends only on whether the answer to a math problem is correct."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.core.fields import Fields
from rewardstack.errors import RequestError
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_verifier.question import EXTRACTIONS, Options, Ruling
from rewardstack_verifier.verification import decide_response

FIELDS = Options._fields
"""Fields of `extra_info` that verifiers read."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """A rule in two steps, before and after the verdict; both are fast on any response.

    Args:
        read: returns the part of a response in which to look for the answer.
        value: returns the outcome of a response from the verdict on that part.
        marked: whether that part is marked as the answer, so that `strict` extraction needs no mark within it.
    """

    read: Callable[[str], str]
    value: Callable[[str, Ruling], Outcome]
    marked: bool = False

    def evaluate(self, response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
        """Return the outcome of a response; the run time is not bounded.

        A server mostly runs the two steps separately; it uses this for long responses and after a fault.

        Args:
            response: what the policy wrote.
            references: correct answers; the sample is unscored if none can be read.
            extra: its `FIELDS` are read.
        """
        try:
            options = self.options(extra)
        except RequestError as error:
            return Outcome(None, str(error), field=error.field or "")
        return self.value(response, decide_response(self.read(response), references, options))

    def options(self, extra: Mapping[str, Any]) -> Options:
        """Return the options of a sample.

        Args:
            extra: its `extra_info`.

        Raises:
            RequestError: an option is malformed.
        """
        given = Fields(extra)
        extraction = given.choice("extraction", EXTRACTIONS)
        return Options(
            EXTRACTIONS[0] if self.marked else extraction,
            given.number("tolerance", None, 0, 1, above=True),
            given.flag("simplified", False),
        )
