"""An asyncio protocol that sends and receives frames (module `frames`)."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod

from rewardstack_rules.isolation.frames import Frame, FrameError, FrameReader

logger = logging.getLogger(__name__)


class FrameConnection(asyncio.Protocol, ABC):
    """One end of a connection. Frames that are sent in one iteration of the event loop are written together.

    Args:
        limit: maximum size of a received body, in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._frames = FrameReader(limit)
        self._transport: asyncio.Transport | None = None
        self._outgoing = bytearray()

    @abstractmethod
    def frame_received(self, frame: Frame) -> None:
        """Handle a frame from the peer."""

    def send(self, frame: Frame) -> None:
        """Send a frame at the end of this iteration of the event loop."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing += frame.encode()

    def abort(self) -> None:
        """Close the connection if it is open."""
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self.frame_received(frame)
        except FrameError as error:
            logger.warning("closing a connection, because its peer sent an invalid frame: %s", error)
            self.abort()

    def _flush(self) -> None:
        assert self._transport is not None
        self._transport.write(bytes(self._outgoing))
        self._outgoing.clear()
