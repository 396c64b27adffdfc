"""Verdicts on questions of mathematics: remembered, because they are facts, and shared while they are found out."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rewardstack.deadline import SharedDeadline
from rewardstack_rules.mathematics import Question, Verdict

REMEMBERED = 8192
"""Questions whose verdicts a process remembers."""
MAX_QUESTION = 2000
"""Characters of a question that is remembered."""

Result = Mapping[str, Any]
Run = Callable[[SharedDeadline], Awaitable[Result]]


@dataclass(slots=True, eq=False)
class _Inquiry:
    """A question that is being decided, for all who ask it."""

    result: asyncio.Task[Result]
    deadline: SharedDeadline


class Verdicts:
    """The verdicts of one process; lives on its event loop.

    Args:
        size: how many are remembered; those least recently asked for are forgotten first.
    """

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._known: OrderedDict[Question, Verdict] = OrderedDict()
        self._inquiries: dict[Question, _Inquiry] = {}

    def recall(self, question: Question) -> Verdict | None:
        """The verdict on a question, None where it is not remembered."""
        verdict = self._known.get(question)
        if verdict is not None:
            self._known.move_to_end(question)
        return verdict

    async def decide(self, question: Question, run: Run, deadline: SharedDeadline) -> Result:
        """What became of a question; it is run once for all who ask it at the same time.

        Args:
            question: what is asked.
            run: decides it, and ends when its deadline passes; gives a `Verdict`'s fields, or a dict with `error`.
            deadline: of the one who asks; the run lasts as long as anybody waits for it.

        Raises:
            RewardstackError: whatever `run` raises.
        """
        verdict = self.recall(question)
        if verdict is not None:
            return verdict._asdict()
        inquiry = self._inquiries.get(question)
        if inquiry is None:
            shared = SharedDeadline()
            shared.absorb(deadline)
            inquiry = self._inquiries[question] = _Inquiry(asyncio.ensure_future(run(shared)), shared)
            inquiry.result.add_done_callback(lambda done: self._finish(question, done))
        else:
            inquiry.deadline.absorb(deadline)
        return await asyncio.shield(inquiry.result)

    def _finish(self, question: Question, done: asyncio.Task[Result]) -> None:
        del self._inquiries[question]
        if done.cancelled() or done.exception() is not None or "error" in done.result():
            return
        if sum(map(len, question.expected)) + len(question.answer) <= MAX_QUESTION:
            self._known[question] = Verdict(**done.result())
            if len(self._known) > self._size:
                self._known.popitem(last=False)
