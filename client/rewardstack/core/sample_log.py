"""Log a share of the scored samples to a file of JSON lines (`REWARDSTACK_SAMPLE_LOG`).

`extremes` reads the samples with the highest and lowest rewards from the file, for the status page.

A line has `at` (seconds since 1970), `route`, `status`, `value`, `reason`, `parts`, and the sample: `data_source`,
`solution_str`, `ground_truth` and `problem`, shortened to `MAX_TEXT` characters. `owner` is a hash of the API key;
empty if there is no key.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from rewardstack.core.json_types import plain
from rewardstack.core.messages import response_text
from rewardstack.core.reward_summary import SCORED, problem_of
from rewardstack.score import Request, Score

MAX_TEXT = 8000
"""Maximum number of characters of a text in the log."""
MAX_BYTES = 32 * 2**20
"""Size in bytes at which the file is renamed to `NAME.1.jsonl`; an earlier file of this name is replaced."""
TAIL = 4 * 2**20
"""Number of bytes at the end of the log that are searched for the highest and the lowest rewards."""
MAX_PARTS = 64
"""Maximum number of a score's parts in the log."""
EXTREMES = 3
"""Maximum number of samples per route in the list of the highest rewards, and in the list of the lowest rewards."""
RECENT = 3600.0
"""Maximum age in seconds of the samples that `extremes` returns."""
WARNING_INTERVAL = 60.0
"""Minimum seconds between two warnings that the file cannot be written."""
_NOT_JSON = re.compile("Infinity|NaN")
"""Matches numbers that Python's `json` writes although JSON does not have them. A value with such a number is logged as
text."""
Line = dict[str, Any]

log = logging.getLogger(__name__)


class SampleLog:
    """Appends samples to the file; safe for several threads and processes.

    Args:
        path: the file; only its owner may read it.
        share: share of the samples to write, from 0 to 1.
    """

    def __init__(self, path: Path, share: float) -> None:
        self._path = path
        self._share = share
        self._random = Random(0)
        self._lock = threading.Lock()
        self._warned = -WARNING_INTERVAL

    def write(
        self, requests: Sequence[Request], scores: Sequence[Score], routes: Sequence[str], owner: str = ""
    ) -> None:
        """Write a share of a batch to the file; log errors instead of raising them.

        Args:
            requests: the samples.
            scores: their scores, in order.
            routes: the name of each sample's route.
            owner: hash of the API key of the samples' owner, who alone may see them.
        """
        rows = zip(requests, scores, routes, strict=True)
        chosen = [row for row in rows if self._random.random() < self._share]
        if not chosen:
            return
        now = round(time.time(), 3)
        try:
            self._append(
                "".join(f"{json.dumps(_make_line(*row, now, owner), default=str)}\n" for row in chosen).encode()
            )
        except (OSError, RecursionError) as error:
            if time.monotonic() - self._warned > WARNING_INTERVAL:
                self._warned = time.monotonic()
                log.warning("REWARDSTACK_SAMPLE_LOG: cannot write to %s: %s", self._path, error)

    def _append(self, data: bytes) -> None:
        """Append to the file; if it has reached `MAX_BYTES`, rename it first. A lock excludes other processes."""
        with self._lock:
            while True:
                file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
                    if not self._is_current(file):  # another process has renamed it
                        continue
                    if os.fstat(file).st_size < MAX_BYTES:
                        os.write(file, data)
                        return
                    os.replace(self._path, _rotated_path(self._path))
                finally:
                    os.close(file)

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        except FileNotFoundError:
            return False


@lru_cache(maxsize=8)
def sample_log(path: str, share: float) -> SampleLog:
    """Return this process's log for a file and a share."""
    return SampleLog(Path(path), share)


def extremes(path: Path) -> dict[str, list[Line]]:
    """Return the samples with the highest and the lowest rewards in the last hour.

    Args:
        path: the file of `REWARDSTACK_SAMPLE_LOG`. Only the last `TAIL` bytes of the log are read; if the file is
            shorter, they include the end of `NAME.1.jsonl`.

    Returns:
        For each owner, a list with one object per route. The fields of an object are `route`, `highest` and `lowest`.
        `highest` and `lowest` are lists of at most `EXTREMES` lines of the log, without the field `owner`.
    """
    found: dict[str, dict[str, list[Line]]] = {}
    since = time.time() - RECENT
    for line in _last_lines(path):
        if line["at"] >= since and line["status"] in SCORED and isinstance(line["value"], (int, float)):
            found.setdefault(str(line.pop("owner")), {}).setdefault(str(line["route"]), []).append(line)
    return {owner: [_extremes(*lines) for lines in sorted(routes.items())] for owner, routes in found.items()}


def _extremes(route: str, lines: list[Line]) -> Line:
    ordered = sorted(lines, key=lambda line: (-line["value"], -line["at"]))
    lowest = ordered[max(EXTREMES, len(ordered) - EXTREMES) :]
    return {"route": route, "highest": ordered[:EXTREMES], "lowest": lowest[::-1]}


def _last_lines(path: Path) -> Iterator[Line]:
    left = TAIL
    for file in (path, _rotated_path(path)):
        try:
            with file.open("rb") as opened:
                size = opened.seek(0, os.SEEK_END)
                opened.seek(max(0, size - left))
                lines = opened.read(left).split(b"\n")[1 if size > left else 0 :]
        except OSError:
            continue
        left = max(0, left - size)
        for text in lines:
            try:
                line = json.loads(text, parse_constant=_reject_constant)
                if {"at", "status", "value", "owner", "route"} <= line.keys():
                    yield line
            except (ValueError, AttributeError):  # not JSON: the last line of a process that was killed
                continue
        if not left:
            return


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _make_line(request: Request, score: Score, route: str, now: float, owner: str) -> Line:
    extra = request.extra_info if isinstance(request.extra_info, dict) else {}
    problem = problem_of(extra)
    return {
        "at": now,
        "route": route,
        "data_source": _shorten(request.data_source),
        "status": score.status,
        "value": score.value,
        "reason": score.reason[:MAX_TEXT],
        "cause": None if score.cause is None else score.cause.value,
        "parts": score.parts and dict(islice(score.parts.items(), MAX_PARTS)),
        "solution_str": _shorten(response_text(request.solution_str) or request.solution_str),
        "ground_truth": _shorten(request.ground_truth),
        "problem": None if problem is None else _shorten(problem),
        "owner": owner,
    }


def _shorten(value: Any) -> Any:
    """Return a short value in plain JSON types, or the start of a longer value's text; for NaN, see `_NOT_JSON`."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}…"
    value = plain(value)
    text = json.dumps(value, default=str)
    if len(text) > MAX_TEXT:
        return f"{text[:MAX_TEXT]}…"
    return text if _NOT_JSON.search(text) else value


def _rotated_path(path: Path) -> Path:
    return path.with_suffix(f".1{path.suffix}")
