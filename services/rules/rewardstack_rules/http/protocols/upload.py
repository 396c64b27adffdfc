"""Read the samples of a job: from a JSON body as in `/v1/score`, or line by line from JSONL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any, cast

from flask import g, request
from werkzeug.exceptions import RequestEntityTooLarge

from rewardstack.core.jsonl import number_lines, read_pieces
from rewardstack.score import Request
from rewardstack_rules.http.admission import body_error, check_encoding, check_value_count
from rewardstack_rules.http.connection import BROKEN_BODY
from rewardstack_rules.http.context import context
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.protocols.body import parse, read_items
from rewardstack_rules.http.protocols.score import convert_samples

LINES = frozenset({"application/x-ndjson", "application/jsonl"})
FORM = "multipart/form-data"
TYPES = f"application/json, {', '.join(sorted(LINES))} or {FORM} with one file"
LINE_BYTES = 2**23
"""Maximum number of bytes in a line."""
LINE_VALUES = 100_000
"""Maximum number of JSON values in a line, which holds one sample. No real sample has that many."""


def read_samples() -> Iterable[Request]:
    """Return an iterator over the samples of the request's body.

    The iterator validates one sample at a time, and raises the same errors as this function. From a JSONL body, it also
    reads one sample at a time.

    Raises:
        ApiError: 400 for a malformed body or sample, 413 for a line that is too large, 415 for another content type.
        OverloadError: the budget of the process is used up.
        UnknownSourceError: a sample's source is unknown.
        RequestEntityTooLarge: the body is longer than the limit.
    """
    kind = request.mimetype
    if request.is_json:
        items: Iterable[Any] = read_items()
    elif kind in LINES:
        items = _parse_lines(_body_lines())
    elif kind == FORM:
        items = _parse_lines(_file_lines())
    else:
        raise ApiError(415, f"the body must be {TYPES}", "Content-Type")
    return convert_samples(items, context().evaluator.check_settings)


def _parse_lines(pieces: Iterable[bytes]) -> Iterator[Any]:
    for number, line in number_lines(pieces):
        field = f"line {number}"
        if len(line) > LINE_BYTES:
            raise ApiError(413, f"{field} is longer than {LINE_BYTES} bytes; a line holds one sample", field)
        check_value_count(line, LINE_VALUES, field, "a line holds one sample")
        yield parse(line, field)


def _body_lines() -> Iterator[bytes]:
    """Yield the body in pieces, as `read_pieces` does. Charge each piece to the budget while it is in use."""
    limit = g.charge.max_bytes
    # If a body has no Content-Length, Flask silently truncates it at `max_content_length`. So allow one byte more than
    # the limit: if that byte arrives, the body is too long.
    request.max_content_length = limit + 1
    read = 0
    check_encoding()
    try:
        for piece in read_pieces(request.stream, LINE_BYTES):
            read += len(piece)
            if read > limit:
                raise RequestEntityTooLarge
            g.charge.add(len(piece))
            yield piece
            g.charge.add(-len(piece))
    except BROKEN_BODY as error:
        raise body_error(error) from error


class _ChargedStream:
    """A form's stream that charges the bytes read to the budget.

    Flask writes these bytes to a temporary file, and containers keep temporary files in memory.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Return the next bytes, and charge them.

        Raises:
            OverloadError: the budget of the process is used up.
        """
        piece = self._stream.read(size)
        g.charge.add(len(piece))
        return piece


def _file_lines() -> Iterator[bytes]:
    """Return the only file of the form, in pieces as from `read_pieces`.

    Before this function returns, Flask stores the whole file as a temporary file.
    """
    request.max_content_length = g.charge.max_bytes
    try:
        request.stream = cast(IO[bytes], _ChargedStream(request.stream))
        files = [file for _, file in request.files.items(multi=True)]
    except BROKEN_BODY as error:
        raise body_error(error) from error
    if len(files) != 1:
        raise ApiError(400, f"the form must have one file, got {len(files)}", "body")
    return read_pieces(files[0].stream, LINE_BYTES)
