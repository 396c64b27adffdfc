"""How samples are posted to a reward server, `POST /v1/score`, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rewardstack.cache.key import read_fields
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.wire import read_scores, sample_record
from rewardstack.errors import RejectedError, ReplyError, RequestError, SettingsError, UnknownSourceError
from rewardstack.score import Item, Score
from rewardstack.scorers.destination import Servers
from rewardstack.settings import Settings
from rewardstack.transport.endpoint_pool import EndpointPool

BATCH = 64
"""Samples in one request."""

KNOCK = json.dumps({"items": []}).encode()


def reward_servers(settings: Settings) -> Servers:
    """The reward servers that the environment names."""
    return Servers(
        "REWARD_SERVER_URL",
        settings.reward_server_urls,
        settings.reward_server_api_key,
        "start a server with `make up` and `export REWARD_SERVER_URL=http://localhost:6000`",
    )


async def post_samples(
    service: EndpointPool, data_source: str, items: Sequence[Item], fields: Sequence[str], deadline: SharedDeadline
) -> list[Score]:
    """One score for each sample, in order, as a reward server gives them.

    Args:
        service: of the server.
        data_source: by which the server shall score them.
        items: at most `BATCH` of them.
        fields: of `extra_info` that are sent; `("*",)` for all.
        deadline: of all who wait.

    Raises:
        DeadlineError, ReplyError: the server did not score them.
        UnknownSourceError: it has no such source; lists those it has.
        SettingsError: it does not take the key.
        RequestError: `extra_info` holds what JSON cannot.
    """
    reply = await _post(service, _body(data_source, items, fields), deadline)
    try:
        scores = read_scores(json.loads(reply)["scores"])
    except (ValueError, KeyError, TypeError) as error:
        raise ReplyError(f"{data_source}: the server's reply is no list of scores") from error
    if len(scores) != len(items):
        raise ReplyError(f"{data_source}: {len(scores)} scores came for {len(items)} samples")
    return scores


def _body(data_source: str, items: Sequence[Item], fields: Sequence[str]) -> bytes:
    records = [sample_record(data_source, item, read_fields(item.extra, fields)) for item in items]
    try:
        return json.dumps({"items": records}).encode()
    except (TypeError, ValueError) as error:
        raise RequestError(f"extra_info: {error}; it must hold what JSON can", "extra_info") from error


async def _post(service: EndpointPool, body: bytes, deadline: SharedDeadline) -> bytes:
    try:
        return await service.post("/v1/score", body, deadline, KNOCK)
    except RejectedError as error:
        if error.status == 404:
            raise UnknownSourceError(str(error), "data_source") from error
        if error.status == 401:
            raise SettingsError(f"{error}; set REWARD_SERVER_API_KEY", "REWARD_SERVER_API_KEY") from error
        raise
