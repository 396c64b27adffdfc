"""Questions of mathematics on their way to isolated processes: shared by all who ask them, and sent together.

To hand a question over takes about as long as to decide it, so those that are asked in one turn of the event loop
travel together. Where a group comes to a bad end, or turns out to be slow, each of its questions starts over alone:
none fails, or waits for long, because of another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from rewardstack.errors import RewardstackError, ServiceError
from rewardstack_rules.scoring.verdict_cache import Verdicts
from rewardstack_verifier.question import Question, Ruling

TOGETHER = 8
"""Questions that travel together at most."""

Result = Mapping[str, Any]
"""What became of a task: `verdicts` (the fields of each, in order), or `error`."""
Run = Callable[[Sequence[Question], bool], Awaitable[Result]]
"""Has questions decided; where the flag is set that has to be brief: it is given up where it turns out to be slow."""
Decision = Ruling | Result | RewardstackError
"""What became of a question: its verdict, a result with `error`, or what the run raised."""

log = logging.getLogger(__name__)


class _Inquiry:
    """A question that is being decided: by which run, together with which others, and who waits for it."""

    __slots__ = ("company", "question", "run", "waiting")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.waiting: list[asyncio.Future[Decision]] = []
        self.company: Sequence[_Inquiry] = ()
        self.run: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> bool:
        """Whether anybody still waits."""
        return not all(waiter.done() for waiter in self.waiting)


class Inquiries:
    """The open questions of one event loop.

    Args:
        run: decides them.
        verdicts: where those that are decided are remembered.
    """

    def __init__(self, run: Run, verdicts: Verdicts) -> None:
        self._run = run
        self._verdicts = verdicts
        self._open: dict[Question, _Inquiry] = {}
        self._gathered: list[_Inquiry] = []

    def ask(self, question: Question) -> asyncio.Future[Decision]:
        """What will become of a question, for one who waits; to cancel it is to wait no longer."""
        verdict = self._verdicts.recall(question)
        if verdict is not None:
            return _known(verdict)
        inquiry = self._open.get(question)
        if inquiry is None:
            inquiry = self._open[question] = _Inquiry(question)
            if not self._gathered:
                asyncio.get_running_loop().call_soon(self._send_gathered)
            self._gathered.append(inquiry)
        waiter: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        inquiry.waiting.append(waiter)
        waiter.add_done_callback(lambda _: self._leave(inquiry, waiter))
        return waiter

    def _leave(self, inquiry: _Inquiry, waiter: asyncio.Future[Decision]) -> None:
        """A question for which nobody waits is dropped, and its run where none of those that run with it is wanted."""
        if not waiter.cancelled() or inquiry.wanted:
            return
        self._close(inquiry)
        if inquiry.run is not None and not any(one.wanted for one in inquiry.company):
            inquiry.run.cancel()
            self._close(*inquiry.company)

    def _close(self, *inquiries: _Inquiry) -> None:
        """Who asks the same from now on knows the verdict, or starts anew."""
        for inquiry in inquiries:
            if self._open.get(inquiry.question) is inquiry:
                del self._open[inquiry.question]

    def _send_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._close(*(inquiry for inquiry in gathered if not inquiry.wanted))
        wanted = [inquiry for inquiry in gathered if inquiry.wanted]
        for start in range(0, len(wanted), TOGETHER):
            self._send(wanted[start : start + TOGETHER])

    def _send(self, company: Sequence[_Inquiry]) -> None:
        run = asyncio.get_running_loop().create_task(self._decide(company))
        for inquiry in company:
            inquiry.company, inquiry.run = company, run

    async def _decide(self, company: Sequence[_Inquiry]) -> None:
        for inquiry, outcome in zip(company, await self._outcomes(company), strict=True):
            if len(company) == 1 or not isinstance(outcome, Mapping):
                self._finish(inquiry, outcome)
            elif inquiry.wanted:
                self._send([inquiry])
            else:
                self._close(inquiry)

    async def _outcomes(self, company: Sequence[_Inquiry]) -> Sequence[Decision]:
        try:
            result = await self._run([inquiry.question for inquiry in company], len(company) > 1)
        except RewardstackError as error:
            return [error] * len(company)
        except Exception as error:
            log.exception("a fault on the way to the isolated processes")
            return [ServiceError(f"internal error: {type(error).__name__}")] * len(company)
        return [result] * len(company) if "error" in result else [Ruling(**one) for one in result["verdicts"]]

    def _finish(self, inquiry: _Inquiry, outcome: Decision) -> None:
        if isinstance(outcome, Ruling):
            self._verdicts.keep(inquiry.question, outcome)
        self._close(inquiry)
        for waiter in inquiry.waiting:
            if not waiter.done():
                waiter.set_result(outcome)


def _known(verdict: Ruling) -> asyncio.Future[Decision]:
    outcome: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
    outcome.set_result(verdict)
    return outcome
