"""Chunks as bytes: compressed JSON."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewardstack.score import Request

LEVEL = 1
"""Of compression: text shrinks to a third or less at the speed of a network."""


def pack_input(start: int, requests: Sequence[Request]) -> bytes:
    """A chunk's samples.

    Args:
        start: the position of the first of them in the job, from 0.
        requests: the samples.
    """
    items = [(one.data_source, one.solution_str, one.ground_truth, one.extra_info) for one in requests]
    return _pack({"start": start, "items": items})


def unpack_input(data: bytes) -> tuple[int, list[Request]]:
    """What `pack_input` was given."""
    record = _unpack(data)
    return record["start"], [Request(*item) for item in record["items"]]


def pack_partial(done: Mapping[int, Mapping[str, Any]]) -> bytes:
    """What is known of some of a chunk's samples, by their position in it."""
    return _pack({str(at): reply for at, reply in done.items()})


def unpack_partial(data: bytes) -> dict[int, dict[str, Any]]:
    """What `pack_partial` was given."""
    return {int(at): reply for at, reply in _unpack(data).items()} if data else {}


def pack_result(start: int, replies: Iterable[Mapping[str, Any]]) -> bytes:
    """A chunk's result: a line of JSON for each sample, with its position in the job as `index`."""
    lines = [json.dumps({"index": start + at, **reply}) + "\n" for at, reply in enumerate(replies)]
    return zlib.compress("".join(lines).encode(), LEVEL)


def unpack_lines(data: bytes) -> list[bytes]:
    """The lines that `pack_result` made, each with its end."""
    return zlib.decompress(data).splitlines(keepends=True)


def _pack(record: Any) -> bytes:
    return zlib.compress(json.dumps(record).encode(), LEVEL)


def _unpack(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))
