"""Waiting for an answer, and saying so where it takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from rewardstack.cli.console import say
from rewardstack.transport.incident import SAID_AFTER

T = TypeVar("T")


async def wait_aloud(call: Coroutine[Any, Any, T], seconds: float, who: str) -> T:
    """What `call` returns; after `SAID_AFTER` a line on stderr tells what is waited for.

    Args:
        call: to be awaited.
        seconds: that it may take.
        who: is asked, and for what, without secrets.

    Raises:
        asyncio.TimeoutError: it took longer; and what `call` raises.
    """
    line = f"waiting: {who} has sent nothing for {SAID_AFTER:g} s; it has {seconds:g} s"
    timer = asyncio.get_running_loop().call_later(SAID_AFTER, say, line)
    try:
        return await asyncio.wait_for(call, seconds)
    finally:
        timer.cancel()
