"""A server under gunicorn whose workers share one isolation; also its configuration file."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.launch import start_supervisor

CONFIG = IsolationConfig("isolation_entries:run", fast=1, slow=1)
client = IsolationClient(CONFIG)


def on_starting(server: Any) -> None:
    """Runs in gunicorn's master, before there are workers."""
    print("directory", start_supervisor(CONFIG).directory, flush=True)


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers with a task's result, the supervisor and the worker."""
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(asyncio.run(answer())).encode()]


async def answer() -> dict[str, Any]:
    """One task through the isolation."""
    result = await client.run({"with": "hello"}, timeout=60)
    stats = await client.stats()
    client.close()
    return {"result": result, "supervisor": stats["pid"], "worker": os.getpid()}
