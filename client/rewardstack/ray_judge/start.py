"""Starts the service in the cluster in which this process is, and ends it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from rewardstack.errors import ConfigError, RequestError, RewardstackError, ServiceError, UnreachableError
from rewardstack.ray_judge.options import EngineOptions
from rewardstack.ray_judge.service import NAME, RewardInferenceService
from rewardstack.settings import read
from rewardstack.settings_table import TABLE
from rewardstack.transport.ray_actor import last_line
from rewardstack_settings.kinds import RAY_NAMESPACE

NUM_ENGINES = "REWARD_NUM_ENGINES"
START_SECONDS = 900.0
"""Seconds for all engines to load their weights."""
PLACE_SECONDS = 60.0
"""Seconds that an engine waits for its place in the cluster."""
CLOSE_SECONDS = 10.0
"""Seconds that a service has to end its engines."""
AT_ONCE = 100_000
"""Calls that the actor takes at the same time; how many wait for engines is bounded by itself, in words."""

_services: list[Any] = []
"""Handles of this process's services: an actor ends when nobody has one any more."""


def engines_asked_for(given: int | None) -> int:
    """How many engines there are to be.

    Args:
        given: how many; None for REWARD_NUM_ENGINES.

    Raises:
        RequestError: none are given.
        SettingsError: the variable holds no such number.
    """
    if given is None:
        return int(read({NUM_ENGINES: TABLE[NUM_ENGINES]}, os.environ)[NUM_ENGINES])
    if given < 1:
        raise RequestError(f"num_engines: {given} is none; give at least 1", "num_engines")
    return given


def start_reward_service(
    model: str,
    num_engines: int | None = None,
    *,
    name: str = NAME,
    namespace: str = RAY_NAMESPACE,
    engine: type | None = None,
    seconds: float = START_SECONDS,
    **options: Any,
) -> Any:
    """The handle of a new service whose engines are all up; it ends with this process, or by `stop_reward_service`.

    This process is in its cluster already (`ray.init`), as a trainer's main script is.

    Args:
        model: a folder, or a name on the model hub.
        num_engines: how many; None for REWARD_NUM_ENGINES.
        name: by which `ray.get_actor` finds it.
        namespace: in which.
        engine: the class whose objects the engines are; None for vLLM.
        seconds: for all engines to load.
        options: the fields of `EngineOptions`, such as `tensor_parallel_size` and `max_model_len`.

    Raises:
        ConfigError: an option is out of bounds, the name is taken, or the cluster has no place for the engines.
        ServiceError: an engine does not start; says why.
    """
    import ray

    service = _make(name, namespace, EngineOptions(model, **options), engines_asked_for(num_engines), engine)
    try:
        ray.get(service.ready.remote(PLACE_SECONDS), timeout=seconds)
    except BaseException as error:
        stop_reward_service(service)
        raise _told(error, seconds) from error
    _services.append(service)
    return service


def _make(name: str, namespace: str, options: EngineOptions, count: int, engine: type | None) -> Any:
    """The handle of an actor that has been asked for."""
    import ray

    if not ray.is_initialized():
        raise ConfigError("this process is in no Ray cluster; call ray.init() before start_reward_service()")
    actor = ray.remote(RewardInferenceService).options(
        name=name, namespace=namespace, num_cpus=0, max_concurrency=AT_ONCE
    )
    try:
        return actor.remote(options, count, engine)
    except ValueError as error:
        why = f"the Ray cluster has an actor {name!r} in the namespace {namespace!r} already"
        raise ConfigError(f"{why}; end it, or take another name", "name") from error


def stop_reward_service(service: Any) -> None:
    """Ends a service, and with it its engines and the places that they have in the cluster.

    Args:
        service: its handle.
    """
    import ray

    with suppress(ray.exceptions.RayError):  # one that is lost cannot be asked
        ray.get(service.close.remote(), timeout=CLOSE_SECONDS)
    ray.kill(service)
    if service in _services:
        _services.remove(service)


def _told(error: BaseException, seconds: float) -> BaseException:
    """An error of a service that does not start, as one of the tree; an interruption as it is."""
    import ray

    if isinstance(error, ray.exceptions.GetTimeoutError):
        return ServiceError(f"the engines are not up within {seconds:g} s; their logs are in the Ray session's folder")
    cause = getattr(error, "cause", None)
    if isinstance(cause, RewardstackError):
        return cause
    if isinstance(error, ray.exceptions.RayError):
        return UnreachableError(f"the service does not start: {last_line(error)}")
    return error
