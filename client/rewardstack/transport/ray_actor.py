"""Send requests to a service that runs as a named Ray actor instead of an HTTP server.

The URL of an actor is `ray://NAMESPACE/NAME`. It is not an address of Ray Client, which has the same scheme. The
actor's method `request` returns a status and a body. Ray is imported at the first request. See
https://docs.ray.io/en/latest/ray-core/actors/named-actors.html
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from rewardstack.core.deadline import HEADER, MAX_TIMEOUT
from rewardstack.core.event_loop import run_in_daemon_thread
from rewardstack.errors import ReplyError, SettingsError, UnreachableError
from rewardstack.transport.message import MAX_MESSAGE, Reply
from rewardstack_settings.kinds import RAY_NAMESPACE, RAY_SCHEME

VARIABLE = "LLM_JUDGE_RAY_ACTOR"
START_COMMAND = "`python -m rewardstack.ray_judge start --model MODEL`"
DEFAULT_TIMEOUT = MAX_TIMEOUT
"""Timeout in seconds of a request without a deadline."""

_handles: dict[str, Any] = {}
"""Ray's handles of the actors, by URL."""
_look_ups: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Task[Any]] = {}
_connect_lock = threading.Lock()


def is_actor(url: str) -> bool:
    """Return whether a URL is that of a Ray actor."""
    return url.startswith(RAY_SCHEME)


def check(url: str) -> None:
    """Raise SettingsError if a URL is that of a Ray actor, but Ray is not installed."""
    if is_actor(url) and find_spec("ray") is None:
        why = f"{VARIABLE} needs Ray, which is not installed; pip install ray, or unset {VARIABLE}"
        raise SettingsError(why, VARIABLE)


class ActorService:
    """Sends requests to Ray actors; see `service.Service`."""

    def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Coroutine[Any, Any, Reply]:
        """Send one request; see the function `send`."""
        return send(method, url, body, headers)


async def send(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
    """Send one request to an actor and return its reply.

    Args:
        method: `GET` or `POST`.
        url: the actor's URL, followed by the path of the request.
        body: JSON, or None.
        headers: HTTP headers; only the deadline is passed to the actor.

    Raises:
        UnreachableError: there is no Ray cluster or no such actor, or the actor is lost or restarting.
        ReplyError: the actor raised an exception.
    """
    namespace, _, rest = url.removeprefix(RAY_SCHEME).partition("/")
    name, _, path = rest.partition("/")
    actor_url = f"{RAY_SCHEME}{namespace}/{name}"
    if actor_url not in _handles:
        _handles[actor_url] = await asyncio.shield(_start_look_up(actor_url, namespace, name))
    seconds = float(headers.get(HEADER, DEFAULT_TIMEOUT * 1000)) / 1000
    try:
        status, data = await call(actor_url, _handles[actor_url].request, method, f"/{path}", body or b"", seconds)
    except UnreachableError:
        _handles.pop(actor_url, None)  # another actor may have this name now
        raise
    return Reply(f"{actor_url}/{path.partition('?')[0]}", status, {}, data)


def _start_look_up(actor_url: str, namespace: str, name: str) -> asyncio.Task[Any]:
    """Return the task that looks up an actor, shared by all concurrent requests."""
    loop = asyncio.get_running_loop()
    if (loop, actor_url) not in _look_ups:
        look_up = loop.create_task(run_in_daemon_thread("rewardstack-ray", partial(_find, actor_url, namespace, name)))
        look_up.add_done_callback(lambda done: _on_look_up_done(loop, actor_url, done))
        _look_ups[loop, actor_url] = look_up
    return _look_ups[loop, actor_url]


def _on_look_up_done(loop: asyncio.AbstractEventLoop, actor_url: str, look_up: asyncio.Task[Any]) -> None:
    del _look_ups[loop, actor_url]
    if not look_up.cancelled():
        look_up.exception()  # mark it as retrieved, in case nobody waits for the task


async def call(actor: str, method: Any, *arguments: object) -> Any:
    """Call a method of an actor and return its result; cancel the call if the caller is cancelled.

    Args:
        actor: name or URL of the actor, for error messages.
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
        raise ReplyError(f"{actor}: {last_line(error)}") from error
    except ray.exceptions.RayError as error:
        raise UnreachableError(f"{actor}: {last_line(error)}") from None


def _find(actor_url: str, namespace: str, name: str) -> Any:
    """Return the handle of an actor; connect this process to a Ray cluster first if necessary."""
    _choose_authentication()
    import ray

    with _connect_lock:
        if not ray.is_initialized():
            connect(os.environ.get("RAY_ADDRESS", "auto"))
    try:
        return ray.get_actor(name, namespace=namespace)
    except ValueError:
        raise UnreachableError(
            f"{actor_url}: the Ray cluster has no such actor; start it with {START_COMMAND}, or correct {VARIABLE}"
        ) from None
    except ray.exceptions.RayError as error:
        raise UnreachableError(f"{actor_url}: {last_line(error)}") from None


def connect(address: str) -> None:
    """Connect this process to an existing Ray cluster.

    Args:
        address: address of the cluster; `auto` for the cluster on this machine.

    Raises:
        UnreachableError: there is no cluster at this address.
    """
    _choose_authentication()
    import ray

    try:
        ray.init(address, namespace=RAY_NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UnreachableError(
            f"cannot join a Ray cluster at {address!r}: {last_line(error)}; set RAY_ADDRESS to a cluster's address, or "
            f"unset RAY_ADDRESS and start a judge with its own cluster: {START_COMMAND}"
        ) from error


def _choose_authentication() -> None:
    """Disable Ray's authentication, unless environment variables configure it.

    By default, Ray 2.59 and later would require a token in the home directory. Call this before Ray is first imported.
    """
    has_token = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    os.environ.setdefault("RAY_AUTH_MODE", "token" if has_token else "disabled")


def last_line(error: BaseException) -> str:
    """Return the class of a Ray error and the last line of its message, which has the cause without the traceback."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1].strip()[:MAX_MESSAGE]}"
