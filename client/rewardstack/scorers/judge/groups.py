"""Score groups of responses to the same problem by comparison, for judges with `compare`.

Samples with the same `data_source` and `group_id` are a group. Without `group_id`, samples with the same `data_source`,
problem and references are a group. The batcher collects each group as one batch. Usually all members of a batch come
from one call. If `group_size` is set and the judge waits for other calls, members can come from all calls of this
process. See `docs/groups.md`.
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

from rewardstack.cause import Cause
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
from rewardstack.scorers.judge.comparison import (
    TIE,
    combine_lists,
    combine_pairs,
    format_candidates,
    request_orders,
    stable_order,
)
from rewardstack.scorers.judge.conversation import read_task
from rewardstack.scorers.judge.fences import Fenced, fence
from rewardstack.scorers.judge.images import IMAGES
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.named import JudgeConfig
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.scorer import NO_ANSWER, Judge
from rewardstack.scorers.judge.verdict import Verdict
from rewardstack.scorers.relay import Relayable

GROUP_ID, ROLLOUT = "group_id", "rollout_index"
"""Fields of `extra_info` with the group and the number of the sample in the group. While a group waits for members from
other calls, a sample replaces an earlier sample with the same number, e.g. if a call is retried."""
GROUP_FIELDS = (GROUP_ID, GROUP_SIZE, ROLLOUT)
MAX_CLOSED_GROUPS = 4096
"""Maximum number of closed groups to remember. A group is closed if it is incomplete when `group_wait` ends."""


def group_name(source: str, extra: Any, references: Any) -> str:
    """Return a hash that is equal for all samples of a group; statistics use `core.reward_summary.group_of` instead.

    Args:
        source: the sample's `data_source`.
        extra: the sample's `extra_info`.
        references: the sample's references.

    Raises:
        RequestError: the sample has neither a `group_id` nor a problem, or one of them is malformed.
    """
    group_id = Fields(extra).get(GROUP_ID)
    identity: object = (GROUP_ID, group_id)
    if group_id is None:
        problem, task = read_task(extra)
        if not (task or problem.strip()):
            why = "missing, and so is `problem`; set one of them, because it identifies the group"
            raise field_error(GROUP_ID, why)
        identity = (problem, task, references)
    elif isinstance(group_id, bool) or not isinstance(group_id, (str, int)) or group_id == "":
        raise field_error(GROUP_ID, f"expected a text or a whole number, got {str(group_id)[:50]!r}")
    text = json.dumps((source, identity), default=str)
    return blake2b(text.encode(), digest_size=16).hexdigest()


class Member(NamedTuple):
    """A sample that is prepared for comparison with the other members of its group.

    Args:
        plan: the plan that would judge the sample alone.
        group: hash that identifies the group (`group_name`).
        size: the declared number of members; None if it is not declared, so that the group is the members in one call.
        rollout: the member's number in the group; None if it has none.
    """

    plan: Plan
    group: str
    size: int | None
    rollout: str | None

    @property
    def text(self) -> str:
        """The text that the judge sees; empty if the member has no answer."""
        return self.plan.shown.candidate if self.plan.shown.candidate.strip() else ""


class GroupJudge(Relayable[Member]):
    """Scores each member of a group by comparison with the others.

    Args:
        judge: the judge.
        named: the judge's definition in the routes file, with a comparison.
        waits: whether to wait for members in other calls; false on a reward server, because waiting blocks a thread.

    Raises:
        RouteError: `group_wait` is not less than the judge's timeout.
    """

    def __init__(self, judge: Judge, named: JudgeConfig, *, waits: bool) -> None:
        assert named.comparison is not None
        self.source, self.timeout, self.report = judge.source, judge.timeout, judge.report
        self._judge = judge
        self._name = f"judges.{named.name}"
        self._comparison = named.comparison
        self._waits = waits
        self._wait = self._comparison.group_wait or judge.timeout / 2
        self._closed_groups: LruCache[str, float] = LruCache(MAX_CLOSED_GROUPS)
        if waits and self._wait >= judge.timeout:
            field = f"{self._name}.group_wait"
            why = f"must be less than the judge's timeout, LLM_JUDGE_SERVER_TIMEOUT={judge.timeout:g} s"
            raise RouteError(f"{field}: {why}, got {self._wait:g}", field)

    def prepare(self, item: Item, destination: Destination | None = None) -> Member | Score:
        """Return the member, or a failed score if the group was closed before the sample arrived.

        Raises:
            RequestError: an option is invalid, or the sample has neither a `group_id` nor a problem.
            RouteError: `group_size` is 1, and the judge has no `single_route`.
        """
        size = Fields(item.extra).integer(GROUP_SIZE, self._comparison.group_size, 1, self._comparison.max_group_size)
        if size == 1:
            field = f"{self._name}.single_route"
            raise RouteError(
                f"{field}: missing, but a sample has group_size = 1; set it to a route for such samples", field
            )
        rollout = Fields(item.extra).get(ROLLOUT)
        group = group_name(item.data_source, item.extra, item.references)
        plan = self._judge.plan(item, destination)
        if (closed_until := self._closed_groups.get(group)) is not None and time.monotonic() < closed_until:
            why = "the sample arrived after its group was closed; raise group_wait"
            return Score.failed(why, self.source, Cause.GROUP)
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
        rejection = self._find_rejection(samples)
        if rejection is not None:
            return [rejection] * len(samples)
        texts = _distinct_texts(samples)
        outcome: list[Score] = []
        if plans := self._make_plans(samples, texts):
            outcome = await self._judge.score_requests(plans, partial(self._compare, texts), context)
            if outcome[0].value is None:
                return outcome * len(samples)
        scores = outcome or [Score(TIE, source=self.source, parts={"wins": 0.0}) for _ in texts]
        by_text = dict(zip(texts, scores, strict=True))
        empty_score = Score(0.0, reason=NO_ANSWER, source=self.source, parts={"wins": 0.0})
        return self._add_ranks([by_text.get(member.text, empty_score) for member in samples], samples[0].size)

    def _find_rejection(self, samples: Sequence[Member]) -> Score | None:
        """Return the score for every sample of the group if the group cannot be compared, else None.

        An incomplete group is compared if it has at least two members, and at least half of its declared size. If the
        judge waits for members in other calls, every incomplete group is also closed: members that arrive in the next
        `_wait` seconds fail.
        """
        count, size = len(samples), samples[0].size
        if size is None or count >= size:
            return self._check_group(samples)
        if self._waits:
            self._closed_groups.put(samples[0].group, time.monotonic() + self._wait)
        if count >= max(2, -(-size // 2)):
            return self._check_group(samples)
        if not self._waits:
            why = f"the request has {count} of the {size} members of a group; send a group in one request"
            return self._unscored(GROUP_SIZE, why)
        why = f"{count} of {size} members of its group arrived within {self._wait:g} s"
        return Score.failed(why, self.source, Cause.GROUP)

    def _check_group(self, samples: Sequence[Member]) -> Score | None:
        """Return None if the group can be compared, else the score for every sample of the group.

        A group cannot be compared if it has too many or too few members, or if the members have different images.
        """
        count, maximum = len(samples), self._comparison.max_group_size
        if count > maximum:
            return self._unscored(GROUP_ID, f"its group has {count} members, above max_group_size = {maximum}")
        if count < 2:
            why = "its group has no other member in this call; score a group in one call, or set group_size"
            return self._unscored(GROUP_ID, why)
        if len({member.plan.shown.images for member in samples}) > 1:
            return self._unscored(IMAGES, "the members of a group have different images; set images = false")
        return None

    def _unscored(self, name: str, why: str) -> Score:
        error = field_error(name, why)
        return Score.unscored(str(error), self.source, error.field, Cause.GROUP)

    def _make_plans(self, samples: Sequence[Member], texts: Sequence[str]) -> list[Plan]:
        """Return the plan of each request; one member's problem and references are used for the whole group."""
        plan = min((member.plan for member in samples), key=lambda plan: (plan.shown.problem, plan.references))
        references = plan.references
        if len(references) > 1:
            references = (Fenced("\n".join(fence("reference", reference) for reference in references)),)
        orders = request_orders(len(texts), self._comparison)
        shown = [
            plan.shown._replace(candidate=format_candidates(texts, order, self._comparison), trace=())
            for order in orders
        ]
        return [
            plan._replace(shown=parts, references=references, compared=len(order))
            for parts, order in zip(shown, orders, strict=True)
        ]

    async def _compare(
        self, texts: Sequence[str], plans: Sequence[Plan], model: Model, deadline: SharedDeadline
    ) -> list[Verdict]:
        """Return the verdict on each text."""
        calls, orders = self._judge.calls, request_orders(len(texts), self._comparison)
        if self._comparison.mode == "listwise":
            lists = await gather_all(calls.grade_candidates(plan, model, deadline) for plan in plans)
            outcome = combine_lists(len(texts), orders, lists)
        else:
            outcome = combine_pairs(len(texts), orders, await self._pair_probabilities(plans, model, deadline))
        by_text = zip(outcome.values, outcome.wins, strict=True)
        return [Verdict(value, agreement=outcome.agreement, parts={"wins": wins}) for value, wins in by_text]

    async def _pair_probabilities(self, plans: Sequence[Plan], model: Model, deadline: SharedDeadline) -> list[float]:
        """Return the probability, for each request, that the candidate shown first is better."""
        try:
            work = (self._judge.calls.verdict(plan, model, plan.references[0], deadline) for plan in plans)
            return [verdict.value for verdict in await gather_all(work)]
        except NoLogprobsError as error:
            field = f"{self._name}.compare"
            why = f"'pairwise' needs token probabilities, but the judge returns none for {model.name}"
            raise RouteError(f"{field}: {why}; set compare = 'listwise'", field) from error

    def _add_ranks(self, scores: Sequence[Score], size: int | None) -> list[Score]:
        """Add the rank of each member, 1 for the best, to its score; members with equal values share a rank."""
        values = [score.value or 0.0 for score in scores]
        note = f"{len(scores)} of {size} members" if size is not None and len(scores) < size else ""
        for score, value in zip(scores, values, strict=True):
            score.parts = {**(score.parts or {}), "rank": 1.0 + sum(other > value for other in values)}
            score.reason = score.reason or note
        return [*scores]

    def describe(self, item: Item, sample: Member) -> Record:
        """Return what the judge reports about the sample, and its group."""
        return {**self._judge.describe(item, sample.plan), "group": sample.group, "compare": self._comparison.mode}

    def portable(self, item: Item, sample: Member) -> Item:
        """Return the item to send to a reward server, with the fields of its group."""
        group_id = {name: value for name in GROUP_FIELDS if (value := Fields(item.extra).get(name)) is not None}
        item_to_send = self._judge.portable(item, sample.plan)
        return replace(item_to_send, extra={**item_to_send.extra, **group_id})

    async def quote(self, samples: Sequence[Member], context: Context) -> Usage:
        """Return the maximum usage as `Judge.quote` does, assuming that later calls add no members to the groups."""
        return await self._judge.quote(self._make_all_plans(samples), context)

    def estimate(self, samples: Sequence[Member]) -> Usage:
        """Return the estimated usage of samples; sends no request."""
        return self._judge.estimate(self._make_all_plans(samples))

    def count_groups(self, samples: Sequence[Member]) -> int:
        """Return the number of groups among the samples."""
        return len(self._split_groups(samples))

    def _split_groups(self, samples: Sequence[Member]) -> list[list[Member]]:
        by_text: dict[str, list[Member]] = {}
        for member in samples:
            by_text.setdefault(member.group, []).append(member)
        whole = [(members, members[0].size or len(members)) for members in by_text.values()]
        return [members[at : at + size] for members, size in whole for at in range(0, len(members), size)]

    def _make_all_plans(self, samples: Sequence[Member]) -> list[Plan]:
        valid_groups = [members for members in self._split_groups(samples) if self._check_group(members) is None]
        return [plan for members in valid_groups for plan in self._make_plans(members, _distinct_texts(members))]


def _distinct_texts(members: Sequence[Member]) -> list[str]:
    """Return the distinct texts of the members, in `stable_order`."""
    return stable_order(filter(None, (member.text for member in members)))
