"""Run a fake judge that only waits, and post requests with bare aiohttp; shared by the judge benchmarks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import aiohttp

SERVER = Path(__file__).with_name("slow_judge.py")
CHAT = "/v1/chat/completions"
JSON = {"Content-Type": "application/json"}


@contextmanager
def slow_judge(delay: float, record: Path | None = None) -> Iterator[tuple[str, Callable[[], float]]]:
    """Run a fake judge that always answers 0.5; yield its URL and a function that returns its CPU time in seconds.

    Args:
        delay: seconds before each answer.
        record: file for the bodies of chat requests, one a line, in order of arrival.
    """
    command = [sys.executable, str(SERVER), str(delay), *([str(record)] if record else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}", lambda: _cpu_seconds(process.pid)
        finally:
            process.kill()


def post_all(url: str, bodies: Sequence[bytes], in_flight: int) -> list[str]:
    """Post chat requests with aiohttp and return the contents of the replies in request order.

    Args:
        url: base URL of the judge.
        bodies: request bodies to post.
        in_flight: maximum number of concurrent requests.
    """

    async def run() -> list[str]:
        connector = aiohttp.TCPConnector(limit=in_flight)
        async with aiohttp.ClientSession(
            url, connector=connector, timeout=aiohttp.ClientTimeout(total=None)
        ) as session:

            async def post(body: bytes) -> str:
                async with session.post(CHAT, data=body, headers=JSON) as reply:
                    return str((await reply.json())["choices"][0]["message"]["content"])

            return await asyncio.gather(*map(post, bodies))

    return asyncio.run(run())


def _cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
