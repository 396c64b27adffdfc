"""Rules whose value depends only on the response's format and on whether its answer to a math problem is correct."""

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
    """A rule that calls the math verifier, which can be slow, between two fast steps.

    Args:
        select_text: the first step; returns the part of a response in which the verifier looks for the answer.
        make_outcome: the last step; returns the outcome for a response and the verifier's verdict on the selected part.
        is_marked: whether the rule's format marks the answer. If it does, the option `extraction` is ignored.
    """

    select_text: Callable[[str], str]
    make_outcome: Callable[[str, Ruling], Outcome]
    is_marked: bool = False

    def evaluate(self, response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
        """Return the outcome of a response, without a time limit.

        A server usually runs the three steps separately, and moves only slow comparisons to an isolated process. It
        calls this method, in an isolated process, only for long responses, for samples with no references or too many,
        and after an unexpected error in one of the steps.

        Args:
            response: the policy's text.
            references: correct answers; the sample is unscored if none of them can be parsed.
            extra: the sample's `extra_info`; only `FIELDS` are read.
        """
        try:
            options = self.options(extra)
        except RequestError as error:
            return Outcome.of_error(error)
        return self.make_outcome(response, decide_response(self.select_text(response), references, options))

    def options(self, extra: Mapping[str, Any]) -> Options:
        """Return the verifier's options for a sample.

        Args:
            extra: the sample's `extra_info`.

        Raises:
            RequestError: an option is malformed.
        """
        values = Fields(extra)
        extraction = values.choice("extraction", EXTRACTIONS)
        return Options(
            EXTRACTIONS[0] if self.is_marked else extraction,
            values.number("tolerance", None, 0, 1, is_exclusive=True),
            values.flag("simplified", False),
        )
