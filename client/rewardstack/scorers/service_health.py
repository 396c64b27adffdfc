"""Check the health of the model services: for each URL, whether the server answers and which model it serves."""

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
from rewardstack.scorers.embedding.protocol import INFO, parse_info
from rewardstack.scorers.judge.api import MODELS, api_path, deployment_name, query_string
from rewardstack.scorers.judge.models import parse_models
from rewardstack.scorers.judge.named import JudgeConfig
from rewardstack.scorers.reward_model import key_of_model, urls_of_model
from rewardstack.settings import Settings
from rewardstack.transport.http import authorization, open_session, send
from rewardstack.transport.message import get_body
from rewardstack.transport.ray_actor import is_actor

TIMEOUT = 2.0
"""Timeout of a check, in seconds."""
MAX_MODELS = 5
"""Maximum number of models to list for a server."""


class ServiceHealth(NamedTuple):
    """The health of one URL of a service.

    Args:
        service: display name of the service.
        address: the URL without secrets.
        up: whether the server answers and does not refuse the key; None for a Ray actor, which is not checked.
        model: the configured model, else the served models; empty if unknown.
        problem: the error; empty for none.
    """

    service: str
    address: str
    up: bool | None
    model: str = ""
    problem: str = ""


class _Check(NamedTuple):
    """A request that checks one URL."""

    service: str
    url: str
    path: str
    headers: Mapping[str, str]
    model: str


async def service_health(settings: Settings, routes: RouteTable) -> list[ServiceHealth]:
    """Return the health of each URL of judges, reward models and the embedding server, checked concurrently.

    Args:
        settings: the environment's settings.
        routes: the routes, which define judges and reward models.
    """
    async with open_session() as session:
        results = await asyncio.gather(*(_run_check(session, check) for check in _list_checks(settings, routes)))
    return list(results)


def _list_checks(settings: Settings, routes: RouteTable) -> Sequence[_Check]:
    checks = _judge_checks("LLM judge", settings)
    for named in map(JudgeConfig, routes.judges.values()):
        try:
            checks += _judge_checks(f"judge {named.name}", named.settings(settings))
        except SettingsError:  # the judge's scorer reports the error
            continue
    for model in routes.reward_models.values():
        urls = urls_of_model(model, settings)
        try:
            headers, path = authorization(key_of_model(model, settings)), api_path(urls, MODELS) if urls else ""
        except SettingsError:  # the model's scorer reports the error
            continue
        checks += [_Check(f"reward model {model.name}", url, path, headers, model.model) for url in urls]
    key = authorization(settings.embedding_api_key)
    return checks + [_Check("embedding server", url, INFO, key, "") for url in settings.embedding_urls]


def _judge_checks(service: str, settings: Settings) -> list[_Check]:
    headers = {**authorization(settings.judge_api_key), **dict(settings.judge_headers)}
    path = api_path(settings.judge_urls, MODELS) + query_string(settings) if settings.judge_urls else ""
    return [
        _Check(service, url, path, headers, settings.judge_model or deployment_name(url)) for url in settings.judge_urls
    ]


async def _run_check(session: aiohttp.ClientSession, check: _Check) -> ServiceHealth:
    address = shown_url(check.url)
    if is_actor(check.url):
        return ServiceHealth(check.service, address, None, check.model)
    try:
        reply = await run_with_timeout(TIMEOUT, send(session, "GET", check.url + check.path, None, check.headers))
        data = get_body(reply)
    except asyncio.TimeoutError:
        return ServiceHealth(check.service, address, False, check.model, f"no answer within {TIMEOUT:g} s")
    except RejectedError as error:
        is_key_refused = error.status in KEY_REFUSED
        return ServiceHealth(
            check.service,
            address,
            not is_key_refused,
            check.model,
            "the server refuses the key" if is_key_refused else "",
        )
    except RewardstackError as error:
        return ServiceHealth(check.service, address, False, check.model, str(error).replace(check.url, address))
    return ServiceHealth(check.service, address, True, check.model or _model_names(check, data))


def _model_names(check: _Check, data: bytes) -> str:
    if check.path == INFO:
        info = parse_info(data)
        return info.model if info else ""
    names = list(parse_models(data) or ())
    return ", ".join(names[:MAX_MODELS]) + (f" and {len(names) - MAX_MODELS} more" if names[MAX_MODELS:] else "")
