"""Chunks as bytes: compressed lines of JSON, a line a sample.

What is read back is what the queue holds by then, so each line is read by itself: one that cannot be read costs no
other.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rewardstack.core.json_types import TOO_DEEP, is_deep
from rewardstack.core.wire import score_record
from rewardstack.score import STATUSES, Request, Score

LEVEL = 1
"""Level of compression: text shrinks to a third or less at the speed of a network."""
LOST = Score.failed("what the queue holds of it cannot be read")
"""The score in place of a sample, or of its result, that nobody can read back."""

Sample = Request | Score
"""A sample, or its score where there is nothing to be scored."""
T = TypeVar("T")


def pack_input(requests: Sequence[Request]) -> bytes:
    """A chunk's samples."""
    return _pack(map(fields_of, requests))


def unpack_input(data: bytes | None, size: int) -> list[Sample]:
    """The samples that `pack_input` was given.

    Args:
        data: what there is; None for nothing.
        size: how many there were.
    """
    return _unpack(data, size, _sample, lambda at: LOST)


def pack_partial(done: Mapping[int, Mapping[str, Any]]) -> bytes:
    """What is known of some of a chunk's samples, by their position in it."""
    return zlib.compress(json.dumps({str(at): reply for at, reply in done.items()}).encode(), LEVEL)


def unpack_partial(data: bytes) -> dict[int, dict[str, Any]]:
    """What `pack_partial` was given; nothing where it cannot be read, so that all is scored anew."""
    try:
        found = json.loads(zlib.decompress(data))
        return {int(at): reply for at, reply in found.items() if _is_reply(reply)}
    except (zlib.error, ValueError, RecursionError, AttributeError):
        return {}


def pack_result(start: int, replies: Iterable[Mapping[str, Any]]) -> bytes:
    """A chunk's result: a line of JSON for each sample, with its position in the job as `index`."""
    return _pack({"index": start + at, **reply} for at, reply in enumerate(replies))


def unpack_lines(data: bytes, start: int, size: int) -> list[bytes]:
    """The lines that `pack_result` made, each with its end; for one that cannot be read one that says so.

    Args:
        data: its bytes.
        start: as `pack_result` had it.
        size: how many there were.
    """

    def line(text: bytes, at: int) -> bytes:
        record = json.loads(text)
        if not _is_reply(record) or record.get("index") != start + at:
            raise ValueError("no line of this chunk")
        return text + b"\n"

    return _unpack(data, size, line, lambda at: _line({"index": start + at, **score_record(LOST)}) + b"\n")


def fields_of(request: Request) -> Any:
    """What stands for a sample; a text says why there is none."""
    if any(map(is_deep, (request.solution_str, request.ground_truth, request.extra_info))):
        return TOO_DEEP
    return request.data_source, request.solution_str, request.ground_truth, request.extra_info


def _sample(text: bytes, at: int) -> Sample:
    match json.loads(text):
        case str(complaint) if complaint == TOO_DEEP:
            return Score.unscored(TOO_DEEP)
        case [str(source), solution, reference, extra]:
            return Request(source, solution, reference, extra)
    raise ValueError("no line of a sample")


def _is_reply(record: Any) -> bool:
    return isinstance(record, dict) and record.get("status") in STATUSES and isinstance(record.get("cached"), bool)


def _pack(records: Iterable[Any]) -> bytes:
    return zlib.compress(b"\n".join(map(_line, records)), LEVEL)


def _line(record: Any) -> bytes:
    return json.dumps(record).encode()


def _unpack(data: bytes | None, size: int, read: Callable[[bytes, int], T], lost: Callable[[int], T]) -> list[T]:
    """What `read` makes of each line, by its position; `lost` where there is none or it cannot be read."""
    try:
        lines = zlib.decompress(data or b"").split(b"\n")
    except zlib.error:
        lines = []
    found = []
    for at in range(size):
        try:
            found.append(read(lines[at], at))
        except (IndexError, TypeError, ValueError, RecursionError):
            found.append(lost(at))
    return found
