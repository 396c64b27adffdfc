"""Names resolve in daemon threads: neither the loop nor the interpreter's exit waits for a name server that hangs."""

from __future__ import annotations

import asyncio
import socket
import threading

from aiohttp.abc import AbstractResolver, ResolveResult


class DaemonResolver(AbstractResolver):
    """The system's own resolution (`getaddrinfo`), a thread a look-up; the connector caches the answers."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of `host`.

        Raises:
            OSError: there are none.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[ResolveResult]] = loop.create_future()

        def settle(result: list[ResolveResult] | OSError) -> None:
            if answer.done():
                return
            if isinstance(result, OSError):
                answer.set_exception(result)
            else:
                answer.set_result(result)

        def work() -> None:
            result: list[ResolveResult] | OSError
            try:
                result = _look_up(host, port, family)
            except OSError as error:
                result = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, result)

        threading.Thread(target=work, name="rewardstack-dns", daemon=True).start()
        return await answer

    async def close(self) -> None:
        """Nothing to close."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    found = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=int(address[1]),
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST,
        )
        for kind, _, protocol, _, address in found
    ]
