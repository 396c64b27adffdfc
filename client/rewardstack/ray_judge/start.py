"""Starts and stops the service in this process's Ray cluster."""

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
"""Seconds that an engine waits for its placement."""
CLOSE_SECONDS = 10.0
"""Seconds that a service has to stop its engines."""
MAX_CONCURRENCY = 100_000
"""Most concurrent calls of the actor; it refuses requests beyond the engines' limit itself, with a message."""

_services: list[Any] = []
"""Handles of this process's services, because Ray stops an actor without handles."""


def engines_asked_for(given: int | None) -> int:
    """Return the number of engines to start.

    Args:
        given: the number; None for REWARD_NUM_ENGINES.

    Raises:
        RequestError: the number is below 1.
        SettingsError: the variable is malformed.
    """
    if given is None:
        return int(read({NUM_ENGINES: TABLE[NUM_ENGINES]}, os.environ)[NUM_ENGINES])
    if given < 1:
        raise RequestError(f"num_engines: {given} is too low; set at least 1", "num_engines")
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
    """Start a service, wait until its engines are up, and return its handle; it ends with this process.

    This process must have called `ray.init`. `stop_reward_service` stops the service earlier.

    Args:
        model: a folder, or a name on the model hub.
        num_engines: number of engines; None for REWARD_NUM_ENGINES.
        name: actor name for `ray.get_actor`.
        namespace: namespace of the actor.
        engine: class of the engines; None for vLLM.
        seconds: timeout for all engines to load.
        options: the fields of `EngineOptions`, such as `tensor_parallel_size` and `max_model_len`.

    Raises:
        ConfigError: an option is out of bounds, the name is in use, or the cluster does not have the resources.
        ServiceError: an engine does not start.
    """
    import ray

    service = _make(name, namespace, EngineOptions(model, **options), engines_asked_for(num_engines), engine)
    try:
        ray.get(service.ready.remote(PLACE_SECONDS), timeout=seconds)
    except BaseException as error:
        stop_reward_service(service)
        raise _start_error(error, seconds) from error
    _services.append(service)
    return service


def _make(name: str, namespace: str, options: EngineOptions, count: int, engine: type | None) -> Any:
    """Create the actor and return its handle."""
    import ray

    if not ray.is_initialized():
        raise ConfigError("this process is in no Ray cluster; call ray.init() before start_reward_service()")
    actor = ray.remote(RewardInferenceService).options(
        name=name, namespace=namespace, num_cpus=0, max_concurrency=MAX_CONCURRENCY
    )
    try:
        return actor.remote(options, count, engine)
    except ValueError as error:
        why = f"the Ray cluster has an actor {name!r} in the namespace {namespace!r} already"
        raise ConfigError(f"{why}; stop it, or use another name", "name") from error


def stop_reward_service(service: Any) -> None:
    """Stop a service and its engines, and release their resources.

    Args:
        service: its handle.
    """
    import ray

    with suppress(ray.exceptions.RayError):  # the service may be lost
        ray.get(service.close.remote(), timeout=CLOSE_SECONDS)
    ray.kill(service)
    if service in _services:
        _services.remove(service)


def _start_error(error: BaseException, seconds: float) -> BaseException:
    """Return the RewardstackError for a failed start; an interruption unchanged."""
    import ray

    if isinstance(error, ray.exceptions.GetTimeoutError):
        return ServiceError(f"the engines are not up within {seconds:g} s; their logs are in the Ray session's folder")
    cause = getattr(error, "cause", None)
    if isinstance(cause, RewardstackError):
        return cause
    if isinstance(error, ray.exceptions.RayError):
        return UnreachableError(f"the service does not start: {last_line(error)}")
    return error
