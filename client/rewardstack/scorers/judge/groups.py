"""The scorer of judges with `compare`: each batch is a group, i.e. the responses to one problem, which are compared.

A sample's group is its `group_id`, else a hash of source, problem and references. The batcher gathers a group: without
`group_size` from the samples of one call, with it from all calls of this process. See `docs/groups.md`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from rewardstack.core.batching import BatchKey
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.fields import Fields, field_error
from rewardstack.core.lru import LruCache
from rewardstack.core.wire import Record
from rewardstack.errors import RouteError
from rewardstack.pipeline.items import GROUP_SIZE
from rewardstack.pipeline.scorer import Context
from rewardstack.score import Item, Score, Usage
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.judge.calls import NoLogprobsError, gather_all
from rewardstack.scorers.judge.comparison import TIE, block, of_lists, of_pairs, orders_of, shown_order
from rewardstack.scorers.judge.conversation import read_task
from rewardstack.scorers.judge.fences import Fenced, fence
from rewardstack.scorers.judge.images import IMAGES
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.named import Named
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.scorer import NO_ANSWER, Judge
from rewardstack.scorers.judge.verdict import Verdict
from rewardstack.scorers.reward_server import Relayable

GROUP_ID, ROLLOUT = "group_id", "rollout_index"
"""Fields of `extra_info`: the group, and the member's number in it; a later sample with this number replaces it."""
GROUP_FIELDS = (GROUP_ID, GROUP_SIZE, ROLLOUT)
LATE_GROUPS = 4096
"""Number of incomplete groups to remember, so that members that arrive later fail at once."""


def group_name(source: str, extra: Any, references: Any) -> str:
    """Return a hash that is equal for the samples of one group; statistics use `core.reward_summary.group_of`.

    Args:
        source: the sample's `data_source`.
        extra: the sample's `extra_info`.
        references: the sample's references.

    Raises:
        RequestError: the sample has neither a `group_id` nor a problem, or one of the two is malformed.
    """
    given = Fields(extra).get(GROUP_ID)
    identity: object = (GROUP_ID, given)
    if given is None:
        problem, task = read_task(extra)
        if not (task or problem.strip()):
            why = "missing, and there is no `problem` that tells the groups apart; give one of the two"
            raise field_error(GROUP_ID, why)
        identity = (problem, task, references)
    elif isinstance(given, bool) or not isinstance(given, (str, int)) or given == "":
        raise field_error(GROUP_ID, f"expected a text or a whole number, got {str(given)[:50]!r}")
    text = json.dumps((source, identity), default=str)
    return blake2b(text.encode(), digest_size=16).hexdigest()


class Member(NamedTuple):
    """A prepared sample.

    Args:
        plan: the plan that would judge the sample alone.
        group: the sample's group.
        size: the declared number of members; None for the samples of the call.
        rollout: the member's number in the group; None if it has none.
    """

    plan: Plan
    group: str
    size: int | None
    rollout: str | None

    @property
    def text(self) -> str:
        """What the judge is shown of the member; empty if it has no answer."""
        return self.plan.shown.candidate if self.plan.shown.candidate.strip() else ""


class GroupJudge(Relayable[Member]):
    """Scores each member of a group by comparison with the others.

    Args:
        judge: the judge.
        named: its definition in the routes file, with a comparison.
        waits: whether to wait for members of other calls; false on a reward server, whose threads would be blocked.

    Raises:
        RouteError: `group_wait` is not less than the judge's timeout.
    """

    def __init__(self, judge: Judge, named: Named, *, waits: bool) -> None:
        assert named.comparison is not None
        self.source, self.timeout, self.report = judge.source, judge.timeout, judge.report
        self._judge = judge
        self._name = f"judges.{named.name}"
        self._how = named.comparison
        self._waits = waits
        self._wait = self._how.group_wait or judge.timeout / 2
        self._late: LruCache[str, float] = LruCache(LATE_GROUPS)
        if waits and self._wait >= judge.timeout:
            field = f"{self._name}.group_wait"
            why = f"must be less than the judge's timeout, LLM_JUDGE_SERVER_TIMEOUT={judge.timeout:g} s"
            raise RouteError(f"{field}: {why}, got {self._wait:g}", field)

    def prepare(self, item: Item, destination: Destination | None = None) -> Member | Score:
        """Return the member, or its failure if its group was judged without it.

        Raises:
            RequestError: an option is invalid, or the sample has neither a `group_id` nor a problem.
            RouteError: the group has one member, and the judge has no `single_route`.
        """
        size = Fields(item.extra).integer(GROUP_SIZE, self._how.group_size, 1, self._how.max_group_size)
        if size == 1:
            field = f"{self._name}.single_route"
            raise RouteError(f"{field}: missing, and a sample has group_size = 1; name the route that scores it", field)
        rollout = Fields(item.extra).get(ROLLOUT)
        group = group_name(item.data_source, item.extra, item.references)
        plan = self._judge.plan(item, destination)
        if (until := self._late.get(group)) is not None and time.monotonic() < until:
            return Score.failed("its group was judged before it arrived; raise group_wait", self.source)
        return Member(plan, group, size, None if rollout is None else str(rollout))

    def batch(self, sample: Member) -> BatchKey:
        """Return a batch key: each batch is a group."""
        name = (sample.plan.destination, sample.group, sample.size)
        if sample.size is None or not self._waits:
            return BatchKey(sample.size or math.inf, name, per_caller=True)
        return BatchKey(sample.size, name, max_wait=self._wait, slot=sample.rollout)

    async def score(self, samples: Sequence[Member], context: Context) -> list[Score]:
        """Return the scores of one group; raise as the judge does.

        Raises:
            RouteError: the judge returns no probabilities, which `pairwise` needs.
        """
        refused = self._refused(samples)
        if refused is not None:
            return [refused] * len(samples)
        texts = _texts(samples)
        outcome: list[Score] = []
        if asked := self._requests(samples, texts):
            outcome = await self._judge.metered(asked, partial(self._decide, texts), context)
            if outcome[0].value is None:
                return outcome * len(samples)
        scores = outcome or [Score(TIE, source=self.source, parts={"wins": 0.0}) for _ in texts]
        found = dict(zip(texts, scores, strict=True))
        blank = Score(0.0, reason=NO_ANSWER, source=self.source, parts={"wins": 0.0})
        return self._ranked([found.get(member.text, blank) for member in samples], samples[0].size)

    def _refused(self, samples: Sequence[Member]) -> Score | None:
        """Return the score of all samples if they cannot be compared; remember a group that is incomplete."""
        count, size = len(samples), samples[0].size
        if size is None or count >= size:
            return self._unfit(samples)
        if self._waits:
            self._late.put(samples[0].group, time.monotonic() + self._wait)
        if count >= max(2, -(-size // 2)):
            return self._unfit(samples)
        if not self._waits:
            why = f"the request has {count} of the {size} members of a group; send a group in one request"
            return self._unscored(GROUP_SIZE, why)
        return Score.failed(f"{count} of {size} members of its group arrived within {self._wait:g} s", self.source)

    def _unfit(self, samples: Sequence[Member]) -> Score | None:
        """Return the score of all samples if the group has too many members, a single one, or different images."""
        count, most = len(samples), self._how.max_group_size
        if count > most:
            return self._unscored(GROUP_ID, f"its group has {count} members, above max_group_size = {most}")
        if count < 2:
            why = "its group has no other member in this call; score a group in one call, or set group_size"
            return self._unscored(GROUP_ID, why)
        if len({member.plan.shown.images for member in samples}) > 1:
            return self._unscored(IMAGES, "the members of a group have different images; set images = false")
        return None

    def _unscored(self, name: str, why: str) -> Score:
        error = field_error(name, why)
        return Score.unscored(str(error), self.source, error.field)

    def _requests(self, samples: Sequence[Member], texts: Sequence[str]) -> list[Plan]:
        """Return the plan of each request; the first member's problem and references are those of the group."""
        plan = min((member.plan for member in samples), key=lambda one: (one.shown.problem, one.references))
        references = plan.references
        if len(references) > 1:
            references = (Fenced("\n".join(fence("reference", one) for one in references)),)
        orders = orders_of(len(texts), self._how)
        shown = [plan.shown._replace(candidate=block(texts, order, self._how), trace=()) for order in orders]
        return [
            plan._replace(shown=one, references=references, compared=len(order))
            for one, order in zip(shown, orders, strict=True)
        ]

    async def _decide(
        self, texts: Sequence[str], asked: Sequence[Plan], model: Model, deadline: SharedDeadline
    ) -> list[Verdict]:
        """Return the verdict on each text."""
        calls, orders = self._judge.calls, orders_of(len(texts), self._how)
        if self._how.mode == "listwise":
            lists = await gather_all(calls.grades(plan, model, deadline) for plan in asked)
            outcome = of_lists(len(texts), orders, lists)
        else:
            outcome = of_pairs(len(texts), orders, await self._chances(asked, model, deadline))
        found = zip(outcome.values, outcome.wins, strict=True)
        return [Verdict(value, agreement=outcome.agreement, parts={"wins": wins}) for value, wins in found]

    async def _chances(self, asked: Sequence[Plan], model: Model, deadline: SharedDeadline) -> list[float]:
        """Return the probability, for each request, that the candidate shown first is better."""
        try:
            work = (self._judge.calls.verdict(plan, model, plan.references[0], deadline) for plan in asked)
            return [verdict.value for verdict in await gather_all(work)]
        except NoLogprobsError as error:
            field = f"{self._name}.compare"
            why = f"the judge returns no token probabilities for {model.name}, which 'pairwise' needs"
            raise RouteError(f"{field}: {why}; set compare = 'listwise'", field) from error

    def _ranked(self, scores: Sequence[Score], size: int | None) -> list[Score]:
        """Return the scores of all members with their ranks, 1 for the best; members with equal values share a rank."""
        values = [score.value or 0.0 for score in scores]
        note = f"{len(scores)} of {size} members" if size is not None and len(scores) < size else ""
        for score, value in zip(scores, values, strict=True):
            score.parts = {**(score.parts or {}), "rank": 1.0 + sum(other > value for other in values)}
            score.reason = score.reason or note
        return [*scores]

    def describe(self, item: Item, sample: Member) -> Record:
        """Return what the judge reports about the sample, and its group."""
        return {**self._judge.describe(item, sample.plan), "group": sample.group, "compare": self._how.mode}

    def portable(self, item: Item, sample: Member) -> Item:
        """Return the item to send to a reward server, with the fields of its group."""
        given = {name: value for name in GROUP_FIELDS if (value := Fields(item.extra).get(name)) is not None}
        sent = self._judge.portable(item, sample.plan)
        return replace(sent, extra={**sent.extra, **given})

    async def quote(self, samples: Sequence[Member], context: Context) -> Usage:
        """Return the maximum usage of samples, as the judge does, if each group is complete."""
        return await self._judge.quote(self._all_requests(samples), context)

    def estimate(self, samples: Sequence[Member]) -> Usage:
        """Return the estimated usage of samples, without a request."""
        return self._judge.estimate(self._all_requests(samples))

    def count_groups(self, samples: Sequence[Member]) -> int:
        """Return the number of groups among the samples."""
        return len(self._groups(samples))

    def _groups(self, samples: Sequence[Member]) -> list[list[Member]]:
        found: dict[str, list[Member]] = {}
        for member in samples:
            found.setdefault(member.group, []).append(member)
        whole = [(members, members[0].size or len(members)) for members in found.values()]
        return [members[at : at + size] for members, size in whole for at in range(0, len(members), size)]

    def _all_requests(self, samples: Sequence[Member]) -> list[Plan]:
        fit = [members for members in self._groups(samples) if self._unfit(members) is None]
        return [plan for members in fit for plan in self._requests(members, _texts(members))]


def _texts(members: Sequence[Member]) -> list[str]:
    """Return the distinct texts that the judge is shown, in the order of `comparison`."""
    return shown_order(filter(None, (member.text for member in members)))
