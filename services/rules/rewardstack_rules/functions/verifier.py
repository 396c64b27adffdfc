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
    """A rule as two fast steps, `read` and `value`; between them, the math verifier decides, which can be slow.

    Args:
        read: returns the part of a response in which the verifier looks for the answer.
        value: returns the outcome for a response and the verdict on that part.
        marked: whether the format already marks that part as the answer; the option `extraction` is then not used.
    """

    read: Callable[[str], str]
    value: Callable[[str, Ruling], Outcome]
    marked: bool = False

    def evaluate(self, response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
        """Return the outcome of a response; the run time is not bounded.

        A server mostly calls `read` and `value` itself; it uses this method for long responses and after a fault.

        Args:
            response: the policy's text.
            references: correct answers; the sample is unscored if none of them can be read.
            extra: the sample's `extra_info`; only `FIELDS` are read.
        """
        try:
            options = self.options(extra)
        except RequestError as error:
            return Outcome(None, str(error), field=error.field or "")
        return self.value(response, decide_response(self.read(response), references, options))

    def options(self, extra: Mapping[str, Any]) -> Options:
        """Return the verifier's options for a sample.

        Args:
            extra: the sample's `extra_info`.

        Raises:
            RequestError: an option is malformed.
        """
        given = Fields(extra)
        extraction = given.choice("extraction", EXTRACTIONS)
        return Options(
            EXTRACTIONS[0] if self.marked else extraction,
            given.number("tolerance", None, 0, 1, is_exclusive=True),
            given.flag("simplified", False),
        )
