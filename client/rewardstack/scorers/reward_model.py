"""Score samples with a reward model: the raw logit of a classifier, or the step scores of a process reward model.

Each sample is one request, because a batch would save little, and one text that is too long would fail the whole batch.
vLLM 0.13 and later has `/classify` for classifiers and `/pooling` for process reward models (docs.vllm.ai,
"Classification Usage" and "Reward Usage"). `reward_apis` has the APIs of other servers.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, cast

from rewardstack.cache.key import PIPELINE_VERSION, PREFIX, Key, digest, hex_digest
from rewardstack.core.batching import BatchKey
from rewardstack.core.cost import estimate_tokens
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.json_types import plain
from rewardstack.core.messages import is_conversation, message_text, to_chat
from rewardstack.core.wire import Record
from rewardstack.errors import BudgetError, RejectedError, ReplyError, RequestError, ServiceError
from rewardstack.pipeline.scorer import Context
from rewardstack.routing.reward_models import RewardModel, Steps
from rewardstack.routing.shaping import FLOORED
from rewardstack.score import Item, OnError, Score, Usage
from rewardstack.scorers import reward_apis
from rewardstack.scorers.budget import Meter, NewMeter
from rewardstack.scorers.destination import Destination, FindPool, Servers
from rewardstack.scorers.judge.api import Api
from rewardstack.scorers.judge.conversation import read_task
from rewardstack.scorers.judge.fences import neutralize
from rewardstack.scorers.judge.models import Models
from rewardstack.scorers.judge.rejected_fields import is_too_long
from rewardstack.scorers.relay import Relayable
from rewardstack.scorers.reward_apis import APIS, TextApi, read_numbers, render
from rewardstack.settings import Settings, read_api_key
from rewardstack.transport.message import Message

VARIABLE = "REWARD_MODEL_SERVER_URL"
CONVERSATION = ("messages", "prompt")
"""Fields of `extra_info` that may contain the conversation before the response; the first match is used."""
READ_FIELDS = (*CONVERSATION, "problem", "question")
"""All fields of `extra_info` that a reward model reads."""
RAW_LOGITS = {"use_activation": False, "activation": False}
"""Request fields for raw logits. The name depends on vLLM's version; both are sent, as vLLM ignores unknown names."""
TEST_CONVERSATION = [{"role": "user", "content": "What is 6 times 7?"}, {"role": "assistant", "content": "42"}]
"""Conversation that `_check_raw_logits` sends to test a server."""
ACTIVATION_TOLERANCE = 1e-3
"""Maximum difference between the outputs with and without an activation that counts as none; replies are not exact."""
SUM_TOLERANCE = 0.01
"""Maximum difference between 1 and the sum of the two probabilities of a step."""
TRUSTED_ROLES = ("system", "developer", "user")
"""Roles of messages that the policy did not write. Control tokens in messages with other roles are neutralized."""


class Sample(NamedTuple):
    """The request for one sample.

    Args:
        destination: the servers and the key.
        messages: role and text of each message; the last one is the response.
        steps: number of steps in the response, for a process reward model; 0 for an outcome reward model.
        meter: counts the usage of the request; None until the sample is scored.
    """

    destination: Destination
    messages: tuple[tuple[str, str], ...]
    steps: int = 0
    meter: Meter | None = None

    @property
    def response(self) -> str:
        """The text to score."""
        return self.messages[-1][1]

    @property
    def prompt(self) -> str:
        """All texts before the response."""
        return "\n".join(text for _, text in self.messages[:-1])


class RewardModelScorer(Relayable[Sample]):
    """A reward model behind one or several equivalent servers.

    Args:
        model: the reward model's definition in a routes file.
        settings: the settings, with the environment's servers and the timeout.
        find_pool: returns the pool of endpoints for URLs and a key.
        new_meter: creates meters for the usage of requests.

    Raises:
        SettingsError: the environment variable with the model's key is not set.
    """

    on_error: OnError = "raise"

    def __init__(self, model: RewardModel, settings: Settings, find_pool: FindPool, new_meter: NewMeter) -> None:
        self.source = f"reward_model:{model.name}"
        self.timeout = settings.reward_model_timeout
        self._model, self._settings, self._find_pool, self._new_meter = model, settings, find_pool, new_meter
        self._api = APIS.get(model.api)
        self._servers = Servers(
            f"reward_models.{model.name}.base_url" if model.base_url else VARIABLE,
            urls_of_model(model, settings),
            key_of_model(model, settings),
            f"set it to the base URL of a vLLM server (`vllm serve MODEL --runner pooling`), or give {model.name} a "
            "base_url in [reward_models]",
            key_variable=model.api_key_env or "REWARD_MODEL_SERVER_API_KEY",
        )
        self._models = Models(Api(find_pool, settings))
        self._raw_checks: dict[tuple[Destination, str], asyncio.Lock | None] = {}  # None once the test has passed

    def prepare(self, item: Item, destination: Destination | None = None) -> Sample | Score:
        """Return the request for the item, or its score if no request is needed.

        For a process reward model, a response without steps gets the value `FLOORED`, which the route replaces with its
        `floor`. If `destination` is set, always return a request, because the reward server scores the item.

        Args:
            item: the item.
            destination: the reward server to which a `Relay` sends the item; None for the model's servers.

        Raises:
            RequestError: the item has neither messages nor a problem.
            SettingsError: no server is set.
        """
        is_relayed = destination is not None
        destination = destination or self._servers.destination({})
        before, response = conversation(item.extra), neutralize(item.solution)
        if len(before) > 1 and before[-1][0] == "assistant" and before[-1][1].strip() == response.strip():
            before = before[:-1]  # the messages include the response
        steps = self._model.steps
        if steps is None:
            return Sample(destination, (*before, ("assistant", response)))
        texts = split_steps(item.solution, steps)
        if not texts and not is_relayed:
            return Score(FLOORED, reason="the response has no steps", source=self.source)
        return Sample(destination, (*before, ("assistant", "".join(text + steps.tag for text in texts))), len(texts))

    async def keys(self, samples: Sequence[Sample], context: Context) -> list[Key | None]:
        """Return a cache key for each sample; all are None if the name of the weights is unknown (`_weights_name`)."""
        [destination] = {sample.destination for sample in samples}
        if (root := await self._weights_name(destination, context.deadline)) is None:
            return [None] * len(samples)
        settings = json.dumps([self._model.name, self._model.score_definition], sort_keys=True)
        revision = self._settings.judge_revision
        prefix = digest(("reward_model", PIPELINE_VERSION, _source_hash(), root, revision, settings))
        return [
            Key(PREFIX + hex_digest(prefix, *(part for one in sample.messages for part in one))) for sample in samples
        ]

    async def _weights_name(self, destination: Destination, deadline: SharedDeadline) -> str | None:
        """Return the name of the weights that vLLM reports; for other servers, the configured name. None if unknown."""
        if self._api is not None:
            return self._model.model or None
        try:
            await self._models.discover(destination, deadline, math.inf)
        except ServiceError:
            return None
        return self._models.choose(self._model.model, destination).root

    def batch(self, sample: Sample) -> BatchKey:
        """Return a batch key: one sample per batch, and at most as many batches in flight as connections."""
        destination = sample.destination
        return BatchKey(1, destination, len(destination.urls) * self._settings.max_connections, sample.prompt)

    async def score(self, samples: Sequence[Sample], context: Context) -> list[Score]:
        """Return the score of the only sample in `samples`; `batch` sets the batch size to 1.

        Raises:
            ConfigError: the routes file sets the wrong number of output weights for this model, or the server does not
                return raw logits.
            BudgetError: the budget of the run is used up.
        """
        [sample] = samples
        started, meter = time.monotonic(), self._new_meter(self.source)
        try:
            score = await self._score(sample._replace(meter=meter), context.deadline)
        except BudgetError as error:
            error.usage = meter.pop()
            raise
        except ServiceError as error:
            score = self._score_of_error(error, sample)
        if context.trace is not None:
            context.trace.note("reward model", {}, [exchange.step() for exchange in context.trace.take()])
        score.latency_ms, score.usage = (time.monotonic() - started) * 1000, meter.pop()
        return [score]

    def describe(self, item: Item, sample: Sample) -> Record:
        """Return the servers, the conversation, and the model's settings that affect the score."""
        messages = [{"role": role, "content": text} for role, text in sample.messages]
        return {"servers": list(sample.destination.urls), "messages": messages, **self._model.score_definition}

    def portable(self, item: Item, sample: Sample) -> Item:
        """Return the item without references; its `extra_info` has only the conversation, in plain JSON types."""
        extra = {name: plain(item.extra[name]) for name in READ_FIELDS if name in item.extra}
        return replace(item, references=(), extra=extra)

    async def quote(self, samples: Sequence[Sample], context: Context) -> Usage:
        """Return the estimated usage; sends no request."""
        return self.estimate(samples)

    def estimate(self, samples: Sequence[Sample]) -> Usage:
        """Return the estimated usage of samples, from the length of their texts."""
        texts = [text for sample in samples for _, text in sample.messages]
        return Usage(len(samples), sum(map(estimate_tokens, texts)), 0, len(samples))

    async def _score(self, sample: Sample, deadline: SharedDeadline) -> Score:
        if self._api is not None:
            logits = await self._request_outputs(self._api, sample, deadline)
        else:
            await self._models.discover(sample.destination, deadline, math.inf)
            name = self._models.choose(self._model.model, sample.destination).name
            if self._model.steps is not None:
                replies = await self._request_numbers(sample, name, "/pooling", {}, deadline)
                return self._score_steps(self._model.steps, replies, sample)
            await self._check_raw_logits(sample, name, deadline)
            logits = await self._request_numbers(sample, name, "/classify", RAW_LOGITS, deadline)
        weights = self._weights(logits)
        logit = sum(weight * one for weight, one in zip(weights, logits, strict=True))
        value = _sigmoid(logit) if self._model.activation == "sigmoid" else logit
        return Score(value, source=self.source, parts={"logit": logit})

    def _weights(self, logits: Sequence[float]) -> Sequence[float]:
        """Return the weight of each output; raise ConfigError if there are not as many weights as outputs."""
        weights = self._model.outputs or (1.0,)
        if len(weights) != len(logits):
            why = f"the model has {len(logits)} outputs, but {len(self._model.outputs) or 'no'} weights are set"
            raise self._model.error("outputs", f"{why}; set one weight for each output, such as [-1, 1]")
        return weights

    def _score_steps(self, steps: Steps, replies: Sequence[Sequence[float]], sample: Sample) -> Score:
        probabilities = [one[-1] for one in replies]
        if len(probabilities) != sample.steps:
            raise ReplyError(
                f"got {len(probabilities)} probabilities for {sample.steps} steps; "
                f"check that {steps.tag!r} is the step tag that the model was trained with"
            )
        aggregate = {"min": min, "mean": fmean, "product": math.prod, "last": lambda values: values[-1]}
        value = float(aggregate[steps.aggregate](probabilities))  # type: ignore[operator]
        return Score(value, source=self.source, parts={f"step_{at}": one for at, one in enumerate(probabilities, 1)})

    async def _request_numbers(
        self, sample: Sample, model: str, path: str, fields: Mapping[str, Any], deadline: SharedDeadline
    ) -> Any:
        """Send a request and return the numbers in the reply: logits, or the probabilities of each step.

        Raises:
            ServiceError: there is no reply, or the reply does not have these numbers.
        """
        messages = [{"role": role, "content": text} for role, text in sample.messages]
        body = {"model": model, "messages": messages, **fields}
        return await self._send(sample, path, body, partial(parse_numbers, path=path), deadline)

    async def _request_outputs(self, api: TextApi, sample: Sample, deadline: SharedDeadline) -> list[float]:
        """Return the raw outputs of a server that gets the sample as one text; raise as `_request_numbers` does."""
        text = render(self._model.template, sample.prompt, sample.response)
        replies: list[float] = await self._send(sample, api.path, api.body(self._model.model, text), api.read, deadline)
        return replies

    async def _send(
        self,
        sample: Sample,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[bytes], Any],
        deadline: SharedDeadline,
    ) -> Any:
        meter = cast(Meter, sample.meter)

        def read_and_count(data: bytes) -> Any:
            meter.count_tokens(data)
            return read(data)

        message = Message("POST", path, json.dumps(body).encode(), {}, meter.admit, read_and_count, is_hedged=True)
        return await self._find_pool(*sample.destination).ask(message, deadline)

    async def _check_raw_logits(self, sample: Sample, model: str, deadline: SharedDeadline) -> None:
        """Test once per server and model that `use_activation` has an effect; some versions of vLLM ignore it.

        Raises:
            ConfigError: the server returns probabilities. They are close to 1 for all good responses, so they hardly
                distinguish these responses.
        """
        key = sample.destination, model
        lock = self._raw_checks.setdefault(key, asyncio.Lock())
        if lock is None:
            return
        async with lock:
            if self._raw_checks[key] is None:
                return
            test_sample = sample._replace(messages=tuple((one["role"], one["content"]) for one in TEST_CONVERSATION))
            raw = await self._request_numbers(test_sample, model, "/classify", RAW_LOGITS, deadline)
            activated = await self._request_numbers(
                test_sample, model, "/classify", dict.fromkeys(RAW_LOGITS, True), deadline
            )
            are_equal = all(map(partial(math.isclose, abs_tol=ACTIVATION_TOLERANCE), raw, activated))
            if are_equal and all(0 <= one <= 1 for one in raw):
                why = f"{', '.join(sample.destination.urls)} ignores `use_activation` and returns probabilities"
                remedy = """use vLLM 0.13 or later, or start it with --pooler-config '{"use_activation": false}'"""
                raise self._model.error("", f"{why}; {remedy}")
            self._raw_checks[key] = None

    def _score_of_error(self, error: ServiceError, sample: Sample) -> Score:
        """Return the score after an error: `FLOORED` if the sample is too long for the model; else a failed score."""
        if isinstance(error, RejectedError):
            is_long = is_too_long(error, [text for _, text in sample.messages])
            error = self._servers.with_key_hint(error, sample.destination)
            if is_long:
                why = "prompt and response together are longer than the reward model's context"
                return Score(FLOORED, reason=why, source=self.source)
            if error.status == 404:
                if self._api is not None:
                    why = f"{error}; check that api = {self._model.api} fits the server"
                    return Score.failed(why, self.source, error.cause)
                served = ", ".join(self._models.served_models(sample.destination)) or "(the server reports none)"
                kind = "a process reward model" if self._model.steps else "a classifier, with --runner pooling"
                remedy = f"check that the server runs {kind}, and set reward_models.{self._model.name}.model to one of"
                return Score.failed(f"{error}; {remedy}: {served}", self.source, error.cause)
        return error.as_score(self.source)


def urls_of_model(model: RewardModel, settings: Settings) -> tuple[str, ...]:
    """Return the base URLs of a model's servers: the model's `base_url`, or else the environment's URLs."""
    return model.base_url or settings.reward_model_urls


def key_of_model(model: RewardModel, settings: Settings) -> str:
    """Return the API key for a model's servers; raise SettingsError if the variable `api_key_env` is not set."""
    if not model.base_url:
        return settings.reward_model_api_key
    return read_api_key(model.api_key_env) if model.api_key_env else ""


def conversation(extra: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the role and the text of each message before the response.

    Raises:
        RequestError: `extra` has neither messages nor a problem.
    """
    for name in CONVERSATION:
        messages = plain(extra.get(name))
        if is_conversation(messages):
            replies = [(str(one["role"]), message_text(one)) for one in to_chat(messages)]
            return tuple((role, text if role in TRUSTED_ROLES else neutralize(text)) for role, text in replies)
    problem, turns = read_task(extra)
    if problem := problem or "\n".join(turn.text for turn in turns if turn.role == "user"):
        return (("user", problem),)
    raise RequestError(
        "extra_info.problem: no task in problem, prompt, messages or question; set one of them", "extra_info.problem"
    )


def split_steps(response: str, steps: Steps) -> list[str]:
    """Return the steps of a response; step tags that the policy wrote are removed, so that they add no steps."""
    while steps.tag in response:
        response = response.replace(steps.tag, "")
    return [neutralize(text.strip()) for text in response.split(steps.separator) if text.strip()]


def parse_numbers(data: bytes, path: str) -> Any:
    """Parse the numbers in a reply to `/classify` (one for each output) or `/pooling` (the probabilities of each step).

    Raises:
        ReplyError: the reply is malformed, or a step has neither one probability nor two that sum to 1.
    """
    try:
        [one] = json.loads(data)["data"]
        replies = one["probs"] if path == "/classify" else one["data"]
        rows = [replies] if path == "/classify" else replies
        numbers = [read_numbers(row) for row in rows]
        if path == "/pooling":
            _check_probabilities(numbers)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ReplyError(f"not a valid reply to {path}: {error}") from None
    return numbers[0] if path == "/classify" else numbers


def _check_probabilities(rows: Sequence[Sequence[float]]) -> None:
    """Raise ValueError unless each row has one probability, or two that sum to 1."""
    remedy = "start vLLM without use_activation: false"
    for row in rows:
        if len(row) > 2 or not 0 <= min(row) <= max(row) <= 1:
            raise ValueError(f"a step needs one or two probabilities, got {row[:4]}; {remedy}")
        if len(row) == 2 and abs(sum(row) - 1) > SUM_TOLERANCE:
            raise ValueError(f"the two probabilities of a step must sum to 1, got {row}; {remedy}")


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


@lru_cache
def _source_hash() -> str:
    """Return a hash of the source of the modules that build requests and parse replies."""
    files = [Path(__file__), Path(reward_apis.__file__)]
    return blake2b(b"".join(file.read_bytes() for file in files), digest_size=16).hexdigest()
