"""Convert chunks to bytes and back: compressed lines of JSON, one per sample.

The queue may return corrupt data. Each line is parsed separately, so that an unreadable line does not affect others.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rewardstack.cause import Cause
from rewardstack.core.json_types import TOO_DEEP, is_deep
from rewardstack.core.wire import score_record
from rewardstack.score import STATUSES, Request, Score

LEVEL = 1
"""zlib's compression level. Text shrinks to a third or less, and compression is about as fast as the network."""
LOST = Score.failed("the sample or its result is corrupt in the queue", cause=Cause.CORRUPT_JOB)
"""The score if a sample or its result cannot be read back from the queue."""

Sample = Request | Score
"""A sample, or the `Score` without a value that replaces an invalid sample."""
T = TypeVar("T")


def pack_input(requests: Sequence[Request]) -> bytes:
    """Return a chunk's samples as bytes."""
    return _pack(map(fields_of, requests))


def unpack_input(data: bytes | None, size: int) -> list[Sample]:
    """Return the samples that `pack_input` packed, with `LOST` in place of unreadable ones.

    Args:
        data: the bytes; None if the queue has none.
        size: number of samples in the chunk.
    """
    return _unpack(data, size, _sample, lambda at: LOST)


def pack_partial(done: Mapping[int, Mapping[str, Any]]) -> bytes:
    """Return replies (scores as JSON) for some of a chunk's samples as bytes; `done` maps positions to replies."""
    return zlib.compress(json.dumps({str(at): reply for at, reply in done.items()}).encode(), LEVEL)


def unpack_partial(data: bytes) -> dict[int, dict[str, Any]]:
    """Return the replies that `pack_partial` packed, or an empty dict if they cannot be read."""
    try:
        found = json.loads(zlib.decompress(data))
        return {int(at): reply for at, reply in found.items() if _is_reply(reply)}
    except (zlib.error, ValueError, RecursionError, AttributeError):
        return {}


def pack_result(start: int, replies: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a chunk's result as bytes: a line of JSON per sample, with its position in the job as `index`."""
    return _pack({"index": start + at, **reply} for at, reply in enumerate(replies))


def result_line(index: int, reply: Mapping[str, Any]) -> bytes:
    """Return the line of JSON for the sample at position `index` in the job."""
    return _line({"index": index, **reply}) + b"\n"


def unpack_lines(data: bytes, start: int, size: int) -> list[bytes]:
    """Return the lines that `pack_result` packed, with line breaks. Unreadable lines get the status `failed`.

    Args:
        data: the bytes.
        start: position of the chunk's first sample in the job.
        size: number of lines.
    """

    def line(text: bytes, at: int) -> bytes:
        record = json.loads(text)
        if not _is_reply(record) or record.get("index") != start + at:
            raise ValueError("the line does not belong to this chunk")
        return text + b"\n"

    return _unpack(data, size, line, lambda at: result_line(start + at, score_record(LOST)))


def fields_of(request: Request) -> Any:
    """Return the fields of a sample as JSON types; None if they are nested too deeply."""
    if any(map(is_deep, (request.solution_str, request.ground_truth, request.extra_info))):
        return None
    return request.data_source, request.solution_str, request.ground_truth, request.extra_info


def _sample(text: bytes, at: int) -> Sample:
    match json.loads(text):
        case None:
            return Score.unscored(TOO_DEEP, cause=Cause.TOO_LONG)
        case [str(source), solution, reference, extra]:
            return Request(source, solution, reference, extra)
    raise ValueError("the line is not a sample")


def _is_reply(record: Any) -> bool:
    return isinstance(record, dict) and record.get("status") in STATUSES and isinstance(record.get("cached"), bool)


def _pack(records: Iterable[Any]) -> bytes:
    return zlib.compress(b"\n".join(map(_line, records)), LEVEL)


def _line(record: Any) -> bytes:
    return json.dumps(record).encode()


def _unpack(data: bytes | None, size: int, read: Callable[[bytes, int], T], lost: Callable[[int], T]) -> list[T]:
    """Return `read(line, position)` for each line of a chunk; if the line is missing or invalid, `lost(position)`."""
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
