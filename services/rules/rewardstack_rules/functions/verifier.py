"""Rules that ask whether an answer to a problem of mathematics is right: such a verdict can be had on its own."""

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
"""Of `extra_info`, which verifiers read."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """A rule in two halves, both quick on responses of any kind; between them comes the verdict.

    Args:
        read: the part of a response in which the answer is looked for.
        value: what a verdict on that part makes of the response.
        marked: whether that part is marked as the answer, so that `strict` extraction asks for no mark within it.
    """

    read: Callable[[str], str]
    value: Callable[[str, Ruling], Outcome]
    marked: bool = False

    def evaluate(self, response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
        """What becomes of a response; it may take any time.

        A server mostly asks by the halves; this evaluates what is too long for that, or where they had a fault.

        Args:
            response: what the policy wrote.
            references: right answers; without one that can be read the sample is unscored.
            extra: of it `FIELDS` are read.
        """
        try:
            options = self.options(extra)
        except RequestError as error:
            return Outcome(None, str(error), field=error.field or "")
        return self.value(response, decide_response(self.read(response), references, options))

    def options(self, extra: Mapping[str, Any]) -> Options:
        """The options of a sample.

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
