"""Names resolve in daemon threads: neither the loop nor the interpreter's exit waits for a name server that hangs."""

from __future__ import annotations

import socket
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult

from rewardstack.transport.daemon_thread import in_daemon_thread


class DaemonResolver(AbstractResolver):
    """The system's own resolution (`getaddrinfo`), a thread a look-up; the connector caches the answers."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of `host`.

        Raises:
            OSError: there are none.
        """
        return await in_daemon_thread("rewardstack-dns", partial(_look_up, host, port, family))

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
