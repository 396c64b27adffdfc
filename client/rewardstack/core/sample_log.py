"""Writes a share of the scored samples to a file of JSON lines (`REWARDSTACK_SAMPLE_LOG`), and reads the extremes.

A line has `at` (seconds since 1970), `route`, `status`, `value`, `reason`, `parts`, and the sample: `data_source`,
`solution_str`, `ground_truth` and `problem`, cut to `LONGEST` characters. `owner` is a hash of the API key; empty
without keys.
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

LONGEST = 8000
"""Number of characters that are kept of a text."""
MOST_BYTES = 32 * 2**20
"""Size of a file at which it is renamed to `NAME.1.jsonl`, in bytes; both together are at most 64 MiB and a batch."""
TAIL = 4 * 2**20
"""Number of bytes at the end of the log that are searched for the highest and the lowest rewards."""
MOST_PARTS = 64
EXTREMES = 3
"""Number of samples with the highest and with the lowest reward, for each route."""
SECONDS = 3600.0
QUIET = 60.0
"""Seconds between two warnings that the file cannot be written."""
_NOT_JSON = re.compile("Infinity|NaN")
"""Numbers that `json` writes and that no other reader of JSON knows; a value that may hold one is logged as text."""
Line = dict[str, Any]

log = logging.getLogger(__name__)


class SampleLog:
    """Appends to the file; thread-safe, and safe between processes that write to the same file.

    Args:
        path: the file; only its owner may read it.
        share: share of the samples to write, from 0 to 1.
    """

    def __init__(self, path: Path, share: float) -> None:
        self._path = path
        self._share = share
        self._random = Random(0)
        self._lock = threading.Lock()
        self._warned = -QUIET

    def write(
        self, requests: Sequence[Request], scores: Sequence[Score], routes: Sequence[str], owner: str = ""
    ) -> None:
        """Write a share of a batch; an error is logged, and changes no score.

        Args:
            requests: the samples.
            scores: their scores, in order.
            routes: the name of each sample's route.
            owner: owner of the samples, who alone may see them.
        """
        rows = zip(requests, scores, routes, strict=True)
        chosen = [row for row in rows if self._random.random() < self._share]
        if not chosen:
            return
        now = round(time.time(), 3)
        try:
            self._append("".join(f"{json.dumps(_line(*row, now, owner), default=str)}\n" for row in chosen).encode())
        except (OSError, RecursionError) as error:
            if time.monotonic() - self._warned > QUIET:
                self._warned = time.monotonic()
                log.warning("REWARDSTACK_SAMPLE_LOG: cannot write to %s: %s", self._path, error)

    def _append(self, data: bytes) -> None:
        with self._lock:
            while True:
                file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
                    if not self._is_current(file):  # another process has renamed it
                        continue
                    if os.fstat(file).st_size < MOST_BYTES:
                        os.write(file, data)
                        return
                    os.replace(self._path, _rotated(self._path))
                finally:
                    os.close(file)

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        except FileNotFoundError:
            return False


@lru_cache(maxsize=8)
def sample_log(path: str, share: float) -> SampleLog:
    """Return the log of this process for these settings."""
    return SampleLog(Path(path), share)


def extremes(path: Path) -> dict[str, list[Line]]:
    """Return the samples with the highest and the lowest rewards of the last hour.

    Args:
        path: the file of `REWARDSTACK_SAMPLE_LOG`; only its last `TAIL` bytes are read.

    Returns:
        For each owner, by route: `route`, `highest` and `lowest`, at most `EXTREMES` lines each, without `owner`.
    """
    found: dict[str, dict[str, list[Line]]] = {}
    since = time.time() - SECONDS
    for line in _last_lines(path):
        if line["at"] >= since and line["status"] in SCORED and isinstance(line["value"], (int, float)):
            found.setdefault(str(line.pop("owner")), {}).setdefault(str(line["route"]), []).append(line)
    return {owner: [_extremes(*one) for one in sorted(routes.items())] for owner, routes in found.items()}


def _extremes(route: str, lines: list[Line]) -> Line:
    ordered = sorted(lines, key=lambda line: (-line["value"], -line["at"]))
    lowest = ordered[max(EXTREMES, len(ordered) - EXTREMES) :]
    return {"route": route, "highest": ordered[:EXTREMES], "lowest": lowest[::-1]}


def _last_lines(path: Path) -> Iterator[Line]:
    left = TAIL
    for file in (path, _rotated(path)):
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
                line = json.loads(text, parse_constant=_refuse)
                if {"at", "status", "value", "owner", "route"} <= line.keys():
                    yield line
            except (ValueError, AttributeError):  # not JSON: the last line of a process that was killed
                continue
        if not left:
            return


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _line(request: Request, score: Score, route: str, now: float, owner: str) -> Line:
    extra = request.extra_info if isinstance(request.extra_info, dict) else {}
    problem = problem_of(extra)
    return {
        "at": now,
        "route": route,
        "data_source": _cut(request.data_source),
        "status": score.status,
        "value": score.value,
        "reason": score.reason[:LONGEST],
        "parts": score.parts and dict(islice(score.parts.items(), MOST_PARTS)),
        "solution_str": _cut(response_text(request.solution_str) or request.solution_str),
        "ground_truth": _cut(request.ground_truth),
        "problem": None if problem is None else _cut(problem),
        "owner": owner,
    }


def _cut(value: Any) -> Any:
    """Return a value if it is short, else the beginning of its text."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    value = plain(value)
    text = json.dumps(value, default=str)
    if len(text) > LONGEST:
        return f"{text[:LONGEST]}…"
    return text if _NOT_JSON.search(text) else value


def _rotated(path: Path) -> Path:
    return path.with_suffix(f".1{path.suffix}")
