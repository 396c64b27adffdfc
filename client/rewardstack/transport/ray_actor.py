"""Sends requests to a service that is a Ray actor, `ray://NAMESPACE/NAME`.

The actor's method `request` answers as an HTTP server would.

Ray is imported at the first request. https://docs.ray.io/en/latest/ray-core/actors/named-actors.html
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from rewardstack.core.deadline import HEADER
from rewardstack.errors import ReplyError, SettingsError, UnreachableError
from rewardstack.transport.daemon_thread import in_daemon_thread
from rewardstack.transport.reply import MESSAGE_CHARACTERS, Reply
from rewardstack_settings.kinds import RAY_NAMESPACE, RAY_SCHEME

VARIABLE = "LLM_JUDGE_RAY_ACTOR"
START = "start it with `python -m rewardstack.ray_judge start`"
UNBOUNDED = 86_400.0
"""Timeout in seconds of a request without a deadline."""

_handles: dict[str, Any] = {}
_look_ups: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Task[Any]] = {}
_connecting = threading.Lock()


def is_actor(url: str) -> bool:
    """Return whether a URL is the address of a Ray actor."""
    return url.startswith(RAY_SCHEME)


def check(url: str) -> None:
    """Raise if a URL is the address of a Ray actor, but Ray is not installed.

    Raises:
        SettingsError: Ray is not installed.
    """
    if is_actor(url) and find_spec("ray") is None:
        why = f"{VARIABLE} needs Ray, which is not installed; pip install ray, or unset {VARIABLE}"
        raise SettingsError(why, VARIABLE)


async def send(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
    """Send one request to an actor and return its reply.

    Args:
        method: `GET` or `POST`.
        url: the actor's address, followed by the path.
        body: JSON, or None.
        headers: HTTP headers; only the deadline is passed to the actor.

    Raises:
        UnreachableError: there is no Ray cluster or no such actor, or the actor is lost or restarting.
        ReplyError: the actor raised an exception.
    """
    namespace, _, rest = url.removeprefix(RAY_SCHEME).partition("/")
    name, _, path = rest.partition("/")
    named = f"{RAY_SCHEME}{namespace}/{name}"
    if named not in _handles:
        _handles[named] = await asyncio.shield(_looked_up(named, namespace, name))
    seconds = float(headers.get(HEADER, UNBOUNDED * 1000)) / 1000
    try:
        status, data = await call(named, _handles[named].request, method, f"/{path}", body or b"", seconds)
    except UnreachableError:
        _handles.pop(named, None)  # another actor may have this name now
        raise
    return Reply(f"{named}/{path.partition('?')[0]}", status, {}, data)


def _looked_up(named: str, namespace: str, name: str) -> asyncio.Task[Any]:
    """Return the task that looks up an actor, shared by all concurrent requests."""
    loop = asyncio.get_running_loop()
    if (loop, named) not in _look_ups:
        look_up = loop.create_task(in_daemon_thread("rewardstack-ray", partial(_find, named, namespace, name)))
        look_up.add_done_callback(lambda done: _ended(loop, named, done))
        _look_ups[loop, named] = look_up
    return _look_ups[loop, named]


def _ended(loop: asyncio.AbstractEventLoop, named: str, look_up: asyncio.Task[Any]) -> None:
    del _look_ups[loop, named]
    if not look_up.cancelled():
        look_up.exception()  # mark it as retrieved, in case nobody waits for the task


async def call(named: str, method: Any, *arguments: object) -> Any:
    """Call a method of an actor and return its result; cancel the call if the caller is cancelled.

    Args:
        named: name of the actor in errors.
        method: method of the actor's handle.
        arguments: arguments of the method.

    Raises:
        UnreachableError: the actor or Ray is lost or restarting.
        ReplyError: the method raised an exception.
    """
    import ray

    try:
        result = method.remote(*arguments)
        try:
            return await result
        except asyncio.CancelledError:
            ray.cancel(result)
            raise
    except ray.exceptions.RayTaskError as error:
        raise ReplyError(f"{named}: {last_line(error)}") from error
    except ray.exceptions.RayError as error:
        raise UnreachableError(f"{named}: {last_line(error)}") from None


def _find(named: str, namespace: str, name: str) -> Any:
    """Return the handle of an actor; first connect this process to a Ray cluster, unless it is connected."""
    import ray

    with _connecting:
        if not ray.is_initialized():
            join(os.environ.get("RAY_ADDRESS", "auto"))
    try:
        return ray.get_actor(name, namespace=namespace)
    except ValueError:
        raise UnreachableError(f"{named}: the Ray cluster has no such actor; {START}, or correct {VARIABLE}") from None
    except ray.exceptions.RayError as error:
        raise UnreachableError(f"{named}: {last_line(error)}") from None


def join(address: str) -> None:
    """Connect this process to an existing Ray cluster.

    Args:
        address: address of the cluster; `auto` for the cluster on this machine.

    Raises:
        UnreachableError: there is no cluster at this address.
    """
    has_token = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    os.environ.setdefault("RAY_AUTH_MODE", "token" if has_token else "disabled")  # else Ray creates one in $HOME
    import ray  # reads the variables above

    try:
        ray.init(address, namespace=RAY_NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = f"cannot join a Ray cluster at {address!r}: {last_line(error)}"
        raise UnreachableError(f"{why}; set RAY_ADDRESS to the address of one, or {START}") from error


def last_line(error: BaseException) -> str:
    """Return the class of a Ray error and the last line of the message: the cause, without the traceback.

    Args:
        error: a Ray error.
    """
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1].strip()[:MESSAGE_CHARACTERS]}"
