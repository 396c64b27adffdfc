"""Health check of the model services: for each URL, whether the server answers and which model it serves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import aiohttp

from rewardstack.core.addresses import shown_url
from rewardstack.core.event_loop import run_with_timeout
from rewardstack.errors import RejectedError, RewardstackError, SettingsError
from rewardstack.routing.routes import RouteTable
from rewardstack.scorers.destination import KEY_REFUSED
from rewardstack.scorers.embedding.protocol import INFO, read_info
from rewardstack.scorers.judge.api import MODELS, below, deployment, query_of
from rewardstack.scorers.judge.models import read_models
from rewardstack.scorers.judge.named import Named
from rewardstack.scorers.reward_model import key_of_model, urls_of_model
from rewardstack.settings import Settings
from rewardstack.transport.http import authorization, open_session, send
from rewardstack.transport.ray_actor import is_actor
from rewardstack.transport.reply import get_body

ANSWER_TIMEOUT = 2.0
"""Timeout of a check, in seconds."""
SHOWN_MODELS = 5
"""Maximum number of models to name for a server."""


class ServiceHealth(NamedTuple):
    """The health of one URL of a service.

    Args:
        service: display name of the service.
        address: the URL without secrets.
        up: whether the server answers; None for a Ray actor, which is not checked.
        model: the configured model, else the served models; empty if unknown.
        problem: the error; empty for none.
    """

    service: str
    address: str
    up: bool | None
    model: str = ""
    problem: str = ""


class _Asked(NamedTuple):
    service: str
    url: str
    path: str
    headers: Mapping[str, str]
    model: str


async def service_health(settings: Settings, routes: RouteTable) -> list[ServiceHealth]:
    """Check all URLs of judges, reward models and the embedding server concurrently.

    Args:
        settings: the environment's settings.
        routes: the routes, which define judges and reward models.
    """
    async with open_session() as session:
        found = await asyncio.gather(*(_ask(session, one) for one in _services(settings, routes)))
    return list(found)


def _services(settings: Settings, routes: RouteTable) -> Sequence[_Asked]:
    found = _judge("LLM judge", settings)
    for named in map(Named, routes.judges.values()):
        try:
            found += _judge(f"judge {named.name}", named.settings(settings))
        except SettingsError:  # the judge's scorer reports the error
            continue
    for model in routes.reward_models.values():
        urls = urls_of_model(model, settings)
        try:
            headers, path = authorization(key_of_model(model, settings)), below(urls, MODELS) if urls else ""
        except SettingsError:  # the model's scorer reports the error
            continue
        found += [_Asked(f"reward model {model.name}", url, path, headers, model.model) for url in urls]
    key = authorization(settings.embedding_api_key)
    return found + [_Asked("embedding server", url, INFO, key, "") for url in settings.embedding_urls]


def _judge(service: str, settings: Settings) -> list[_Asked]:
    headers = {**authorization(settings.judge_api_key), **dict(settings.judge_headers)}
    path = below(settings.judge_urls, MODELS) + query_of(settings) if settings.judge_urls else ""
    return [_Asked(service, url, path, headers, settings.judge_model or deployment(url)) for url in settings.judge_urls]


async def _ask(session: aiohttp.ClientSession, one: _Asked) -> ServiceHealth:
    address = shown_url(one.url)
    if is_actor(one.url):
        return ServiceHealth(one.service, address, None, one.model)
    try:
        reply = await run_with_timeout(ANSWER_TIMEOUT, send(session, "GET", one.url + one.path, None, one.headers))
        data = get_body(reply)
    except asyncio.TimeoutError:
        return ServiceHealth(one.service, address, False, one.model, f"no answer within {ANSWER_TIMEOUT:g} s")
    except RejectedError as error:
        refused = error.status in KEY_REFUSED
        return ServiceHealth(one.service, address, not refused, one.model, "it refuses the key" if refused else "")
    except RewardstackError as error:
        return ServiceHealth(one.service, address, False, one.model, str(error).replace(one.url, address))
    return ServiceHealth(one.service, address, True, one.model or _model(one, data))


def _model(one: _Asked, data: bytes) -> str:
    if one.path == INFO:
        about = read_info(data)
        return about.model if about else ""
    names = list(read_models(data) or ())
    return ", ".join(names[:SHOWN_MODELS]) + (f" and {len(names) - SHOWN_MODELS} more" if names[SHOWN_MODELS:] else "")
