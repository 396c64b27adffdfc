"""The containers of judges by name: each is the default judge's, with a model, replicas and GPUs of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import islice
from typing import Any

from services.gateway import config as gateway
from services.models import machine
from services.models.machine import Gpu
from services.stack.settings import Settings
from services.up import model_servers
from services.up.model_servers import JUDGE, ModelServer

REPLICAS_FLAG = "--data-parallel-size"
"""Of vLLM, whose replicas on GPUs share one container."""


def gpus_of(settings: Settings, chosen: Sequence[ModelServer], gpus: Sequence[Gpu]) -> dict[str, str]:
    """The GPUs of each judge's container, as JUDGE_GPUS has them.

    Where judges are named, each has its own: the default one those of JUDGE_GPUS, or as many as it takes of all, and
    the others what it and EMBEDDING_GPU leave.

    Args:
        settings: of the stack.
        chosen: model servers.
        gpus: of the machine; empty, and nobody has any.

    Raises:
        StackError: there are too few.
    """
    judges, size = model_servers.judges(chosen), settings.number("JUDGE_TENSOR_PARALLEL_SIZE")
    if not gpus or not judges:
        return {}
    if judges == [JUDGE] and settings["JUDGE_GPUS"] == "all":
        machine.require(gpus, model_servers.copies(JUDGE, settings), size)
        return {JUDGE.name: "all"}
    found = {} if settings["JUDGE_GPUS"] == "all" else {JUDGE.name: settings["JUDGE_GPUS"]}
    taken = ",".join([*found.values(), settings["EMBEDDING_GPU"]]).split(",")
    left = [gpu for gpu in gpus if gpu.name not in taken]
    copies = {judge.name: model_servers.copies(judge, settings) for judge in judges if judge.name not in found}
    machine.require(left, sum(copies.values()), size)
    names = (gpu.name for gpu in left)
    return {**found, **{judge: ",".join(islice(names, count * size)) for judge, count in copies.items()}}


def services(
    chosen: Sequence[ModelServer], judge: Mapping[str, Any], gpus: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """The services of the named judges, by name.

    Args:
        chosen: model servers.
        judge: the default judge's service, as Compose reads it.
        gpus: those of each container.
    """
    named = (server for server in model_servers.judges(chosen) if server != JUDGE)
    return {server.name: _service(server, judge, gpus.get(server.name, "")) for server in named}


def _service(server: ModelServer, judge: Mapping[str, Any], gpus: str) -> dict[str, Any]:
    made = deepcopy({name: value for name, value in judge.items() if name != "profiles"})
    # A user's own image may be given no command.
    made["command"] = [server.model, *(made.get("command") or ())[1:]]
    if not gpus:
        return {**made, "scale": server.replicas}
    if REPLICAS_FLAG in made["command"]:
        made["command"][made["command"].index(REPLICAS_FLAG) + 1] = str(server.replicas)
    for device in made["deploy"]["resources"]["reservations"]["devices"]:
        device["device_ids"] = [gpus]
    return made


def variables(chosen: Sequence[ModelServer], settings: Settings) -> dict[str, str]:
    """What the gateway is told of them: Compose's own DNS has an address for each replica."""
    judges = model_servers.named(chosen)
    servers = {service: [f"{service}:8000 resolve"] for service in judges.values()}
    return gateway.named_judges(judges, servers, settings)
