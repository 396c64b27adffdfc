"""Sends requests to a service that runs as a Ray actor, `ray://NAMESPACE/NAME`, instead of an HTTP server.

The actor's method `request` returns a status and a body. Ray is imported at the first request. See
https://docs.ray.io/en/latest/ray-core/actors/named-actors.html
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
from rewardstack.core.event_loop import run_in_daemon_thread
from rewardstack.errors import ReplyError, SettingsError, UnreachableError
from rewardstack.transport.message import MAX_MESSAGE, Reply
from rewardstack_settings.kinds import RAY_NAMESPACE, RAY_SCHEME

VARIABLE = "LLM_JUDGE_RAY_ACTOR"
START_COMMAND = "start it with `python -m rewardstack.ray_judge start`"
MAX_TIMEOUT = 86_400.0
"""Timeout in seconds of a request without a deadline."""

_handles: dict[str, Any] = {}
_look_ups: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Task[Any]] = {}
_connect_lock = threading.Lock()


def is_actor(url: str) -> bool:
    """Return whether a URL is the address of a Ray actor."""
    return url.startswith(RAY_SCHEME)


def check(url: str) -> None:
    """Raise SettingsError if a URL is the address of a Ray actor, but Ray is not installed."""
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
    address = f"{RAY_SCHEME}{namespace}/{name}"
    if address not in _handles:
        _handles[address] = await asyncio.shield(_start_look_up(address, namespace, name))
    seconds = float(headers.get(HEADER, MAX_TIMEOUT * 1000)) / 1000
    try:
        status, data = await call(address, _handles[address].request, method, f"/{path}", body or b"", seconds)
    except UnreachableError:
        _handles.pop(address, None)  # another actor may have this name now
        raise
    return Reply(f"{address}/{path.partition('?')[0]}", status, {}, data)


def _start_look_up(address: str, namespace: str, name: str) -> asyncio.Task[Any]:
    """Return the task that looks up an actor, shared by all concurrent requests."""
    loop = asyncio.get_running_loop()
    if (loop, address) not in _look_ups:
        look_up = loop.create_task(run_in_daemon_thread("rewardstack-ray", partial(_find, address, namespace, name)))
        look_up.add_done_callback(lambda done: _on_look_up_done(loop, address, done))
        _look_ups[loop, address] = look_up
    return _look_ups[loop, address]


def _on_look_up_done(loop: asyncio.AbstractEventLoop, address: str, look_up: asyncio.Task[Any]) -> None:
    del _look_ups[loop, address]
    if not look_up.cancelled():
        look_up.exception()  # mark it as retrieved, in case nobody waits for the task


async def call(address: str, method: Any, *arguments: object) -> Any:
    """Call a method of an actor and return its result; cancel the call if the caller is cancelled.

    Args:
        address: name of the actor in errors.
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
        raise ReplyError(f"{address}: {last_line(error)}") from error
    except ray.exceptions.RayError as error:
        raise UnreachableError(f"{address}: {last_line(error)}") from None


def _find(address: str, namespace: str, name: str) -> Any:
    """Return the handle of an actor; connect this process to a Ray cluster first if necessary."""
    import ray

    with _connect_lock:
        if not ray.is_initialized():
            connect(os.environ.get("RAY_ADDRESS", "auto"))
    try:
        return ray.get_actor(name, namespace=namespace)
    except ValueError:
        raise UnreachableError(
            f"{address}: the Ray cluster has no such actor; {START_COMMAND}, or correct {VARIABLE}"
        ) from None
    except ray.exceptions.RayError as error:
        raise UnreachableError(f"{address}: {last_line(error)}") from None


def connect(address: str) -> None:
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
        raise UnreachableError(f"{why}; set RAY_ADDRESS to the address of one, or {START_COMMAND}") from error


def last_line(error: BaseException) -> str:
    """Return the class of a Ray error and the last line of its message, which has the cause without the traceback."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1].strip()[:MAX_MESSAGE]}"
