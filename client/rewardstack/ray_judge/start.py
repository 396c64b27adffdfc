"""Start and stop the judge's service in the Ray cluster to which this process is connected."""

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
"""Environment variable with the default number of engines."""
START_TIMEOUT = 900.0
"""Default timeout for the start of a service, in seconds; loading the weights takes most of the start."""
PLACEMENT_TIMEOUT = 60.0
"""Timeout for the placement of the engines in the cluster, in seconds."""
CLOSE_TIMEOUT = 10.0
"""Timeout for a service to stop its engines, in seconds."""
MAX_CONCURRENCY = 100_000
"""Maximum number of concurrent calls of the actor; Ray delays further calls. Up to 48 engines together accept fewer
requests than this (`balancing.MAX_IN_FLIGHT` each), so the actor can refuse excess requests with status 429."""

_services: list[Any] = []
"""Handles of the services that this process started; Ray stops an actor once all its handles are gone."""


def get_engine_count(num_engines: int | None) -> int:
    """Return the number of engines to start.

    Args:
        num_engines: the number; None for REWARD_NUM_ENGINES.

    Raises:
        RequestError: the number is below 1.
        SettingsError: REWARD_NUM_ENGINES is malformed.
    """
    if num_engines is None:
        return int(read({NUM_ENGINES: TABLE[NUM_ENGINES]}, os.environ)[NUM_ENGINES])
    if num_engines < 1:
        raise RequestError(f"num_engines: {num_engines} is too low; set at least 1", "num_engines")
    return num_engines


def start_reward_service(
    model: str,
    num_engines: int | None = None,
    *,
    name: str = NAME,
    namespace: str = RAY_NAMESPACE,
    engine: type | None = None,
    seconds: float = START_TIMEOUT,
    **options: Any,
) -> Any:
    """Start a service, wait until its engines are up, and return its handle; the service ends with this process.

    This process must have called `ray.init`. `stop_reward_service` stops the service earlier.

    Args:
        model: the model: a folder, or a name on the model hub.
        num_engines: number of engines; None for REWARD_NUM_ENGINES.
        name: name of the actor, for `ray.get_actor`.
        namespace: Ray namespace of the actor.
        engine: class of the engines; None for vLLM.
        seconds: timeout of the start, in seconds.
        options: fields of `EngineOptions`, such as `tensor_parallel_size` and `max_model_len`.

    Raises:
        ConfigError: an option is out of bounds, the name is in use, or the cluster does not have the resources.
        ServiceError: an engine does not start, or the engines are not up after `seconds`.
    """
    import ray

    service = _create_actor(name, namespace, EngineOptions(model, **options), get_engine_count(num_engines), engine)
    try:
        ray.get(service.ready.remote(PLACEMENT_TIMEOUT), timeout=seconds)
    except BaseException as error:
        stop_reward_service(service)
        raise _start_error(error, seconds) from error
    _services.append(service)
    return service


def _create_actor(name: str, namespace: str, options: EngineOptions, num_engines: int, engine: type | None) -> Any:
    """Create the actor and return its handle."""
    import ray

    if not ray.is_initialized():
        raise ConfigError("this process is not in a Ray cluster; call ray.init() before start_reward_service()")
    actor = ray.remote(RewardInferenceService).options(
        name=name, namespace=namespace, num_cpus=0, max_concurrency=MAX_CONCURRENCY
    )
    try:
        return actor.remote(options, num_engines, engine)
    except ValueError as error:
        why = f"the Ray cluster has an actor {name!r} in the namespace {namespace!r} already"
        raise ConfigError(f"{why}; stop it, or use another name", "name") from error


def stop_reward_service(service: Any) -> None:
    """Stop a service and its engines, and release their resources.

    Args:
        service: the handle of the service.
    """
    import ray

    with suppress(ray.exceptions.RayError):  # the service may be lost
        ray.get(service.close.remote(), timeout=CLOSE_TIMEOUT)
    ray.kill(service)
    if service in _services:
        _services.remove(service)


def _start_error(error: BaseException, seconds: float) -> BaseException:
    """Return the RewardstackError for a failed start; return an error that is not from Ray unchanged."""
    import ray

    if isinstance(error, ray.exceptions.GetTimeoutError):
        return ServiceError(f"the engines are not up within {seconds:g} s; their logs are in the Ray session's folder")
    cause = getattr(error, "cause", None)
    if isinstance(cause, RewardstackError):
        return cause
    if isinstance(error, ray.exceptions.RayError):
        return UnreachableError(f"the service does not start: {last_line(error)}")
    return error
