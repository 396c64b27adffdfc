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
    """A rule that calls the math verifier: a fast step before the verifier, which can be slow, and one after it.

    Args:
        select_text: returns the part of a response in which the verifier looks for the answer.
        make_outcome: returns the outcome for a response and the verdict on that part.
        is_marked: whether the format marks that part as the answer; the option `extraction` is then ignored.
    """

    select_text: Callable[[str], str]
    make_outcome: Callable[[str, Ruling], Outcome]
    is_marked: bool = False

    def evaluate(self, response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
        """Return the outcome of a response, without a time limit.

        A server usually calls `select_text` and `make_outcome` itself. It calls this method for long responses and
        after a fault.

        Args:
            response: the policy's text.
            references: correct answers; the sample is unscored if none of them can be parsed.
            extra: the sample's `extra_info`; only `FIELDS` are read.
        """
        try:
            options = self.options(extra)
        except RequestError as error:
            return Outcome(None, str(error), field=error.field or "")
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
