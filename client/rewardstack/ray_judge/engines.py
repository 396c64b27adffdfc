"""Start the engines of a service. Each engine is an actor in its own placement group; Ray restarts a lost actor."""

from __future__ import annotations

import asyncio
from typing import Any

from rewardstack.errors import ConfigError, RequestError
from rewardstack.ray_judge.options import EngineOptions
from rewardstack.transport.ray_actor import call

MAX_CONCURRENCY = 4096
"""Maximum number of concurrent calls to an engine's actor; high, because vLLM's scheduler queues the requests."""
UNLIMITED = -1
"""Ray's value for an unlimited number of restarts."""


class RemoteEngine:
    """A client of an engine's actor.

    Args:
        number: the number of the engine, counted from 1.
        handle: the handle of the engine's actor.
        group: the placement group of the engine and its workers.
        bundles: the resources of each bundle of the placement group.
    """

    def __init__(self, number: int, handle: Any, group: Any, bundles: list[dict[str, float]]) -> None:
        self.name = f"engine {number}"
        self._handle = handle
        self._group = group
        self._bundles = bundles

    async def request(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a request and return the status and the body; raise as `rewardstack.transport.ray_actor.call` does."""
        answer: tuple[int, bytes] = await call(self.name, self._handle.request, method, path, body)
        return answer

    async def ping(self) -> int:
        """Wait until the engine is up and return its process ID; raise as `request` does."""
        return int(await call(self.name, self._handle.ping))

    def remove(self) -> None:
        """Stop the engine and release its placement group, which would otherwise exist until the job ends."""
        from ray.util.placement_group import remove_placement_group

        remove_placement_group(self._group)

    async def wait_until_placed(self, seconds: float) -> None:
        """Wait until the placement group has its resources.

        Raises:
            ConfigError: no node has the resources free within `seconds`.
        """
        try:
            await asyncio.wait_for(_wait_for(self._group.ready()), seconds)
        except asyncio.TimeoutError:
            resources = " and ".join(f"{amount:g} {kind}" for kind, amount in self._bundles[0].items())
            needed = f"{len(self._bundles)} times {resources}"
            why = f"{self.name}: no node of the Ray cluster has {needed} free within {seconds:g} s"
            raise ConfigError(f"{why}; use fewer engines, or a smaller tensor_parallel_size") from None


def create_frozen_vllm_engines(
    options: EngineOptions, num_engines: int, engine: type | None = None
) -> list[RemoteEngine]:
    """Start engines with frozen weights in this process's Ray cluster; return before they are up.

    Each engine has a placement group on one node, with one bundle per GPU. Without GPUs, the group has one bundle. If
    there is one bundle, the engine's actor uses the resources of this bundle. If there are several bundles, each vLLM
    worker uses one of them, and the actor runs on the same node without reserved resources.
    https://docs.ray.io/en/latest/ray-core/scheduling/placement-group.html

    Args:
        options: the options of each engine.
        num_engines: number of engines.
        engine: the class of the engines; None for `FrozenVllmEngine`.

    Raises:
        RequestError: tensor parallelism needs GPUs, and the cluster has none.
    """
    import ray

    uses_gpu = ray.cluster_resources().get("GPU", 0) > 0
    if options.tensor_parallel_size > 1 and not uses_gpu:
        why = f"{options.tensor_parallel_size} needs GPUs, and the Ray cluster has none; set it to 1"
        raise RequestError(f"tensor_parallel_size: {why}", "tensor_parallel_size")
    if engine is None:
        from rewardstack.ray_judge.vllm_engine import FrozenVllmEngine as engine
    return [_start_engine(number, options, engine, uses_gpu=uses_gpu) for number in range(1, num_engines + 1)]


def _start_engine(number: int, options: EngineOptions, engine: Any, *, uses_gpu: bool) -> RemoteEngine:
    import ray
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    bundle: dict[str, float] = {"GPU": 1, "CPU": 1} if uses_gpu else {"CPU": 1}
    bundles = [dict(bundle) for _ in range(options.tensor_parallel_size)]
    group = placement_group(bundles, strategy="STRICT_PACK")
    is_single = options.tensor_parallel_size == 1
    actor = ray.remote(engine).options(
        num_cpus=1 if is_single else 0,
        num_gpus=1 if is_single and uses_gpu else 0,
        max_restarts=UNLIMITED,
        max_concurrency=MAX_CONCURRENCY,
        runtime_env={"env_vars": options.variables()},
        scheduling_strategy=PlacementGroupSchedulingStrategy(
            group, placement_group_bundle_index=0, placement_group_capture_child_tasks=True
        ),
    )
    return RemoteEngine(number, actor.remote(options), group, bundles)


async def _wait_for(reference: Any) -> Any:
    return await reference
