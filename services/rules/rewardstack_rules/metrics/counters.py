"""What the server counts, and `GET /metrics`, which tells it over all its processes.

Under gunicorn each process writes to files in PROMETHEUS_MULTIPROC_DIR, which must be set before this is imported.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from prometheus_client import (
    REGISTRY,
    Counter,
    Gauge,
    Histogram,
    start_http_server,
)
from prometheus_client.registry import Collector

from rewardstack.errors import SettingsError
from rewardstack.score import STATUSES, Score, Usage
from rewardstack_rules.metrics.causes import cause_of

BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

REQUESTS = Counter("rewardstack_requests_total", "Requests answered.", ["endpoint", "code"])
SECONDS = Histogram("rewardstack_request_seconds", "Time from a request to its answer.", ["endpoint"], buckets=BUCKETS)
IN_PROGRESS = Gauge(
    "rewardstack_requests_in_progress", "Requests that are being answered.", multiprocess_mode="livesum"
)
ITEMS = Counter("rewardstack_items_total", "Samples scored, by who scored them and how it ended.", ["route", "status"])
CACHED = Counter("rewardstack_cache_hits_total", "Samples whose score was read from the cache.", ["route"])
SENT = Counter(
    "rewardstack_model_requests_total",
    "Requests sent to judges and embedding servers, each attempt, by whose samples they are.",
    ["route"],
)
COUNTED = Counter(
    "rewardstack_model_replies_counted_total",
    "Replies of judges and embedding servers that said how many tokens they took; those of the others are not known.",
    ["route"],
)
TOKENS = Counter(
    "rewardstack_model_tokens_total",
    "Tokens that judges and embedding servers said they read (`prompt`) and wrote (`completion`).",
    ["route", "kind"],
)
UNWRITTEN = Counter(
    "rewardstack_cache_unwritten_total",
    "Values that never came into the result cache: it did not take them, or too many waited.",
)
DISTRUSTED = Counter(
    "rewardstack_cache_refused_total",
    "Values in the result cache that were not believed: malformed, out of range, or not sealed with the secret.",
)
COMPARED = Counter(
    "rewardstack_math_compared_total",
    "Answers of mathematics compared in isolated processes: by their `values`, or left `undecided`.",
    ["by"],
)
CODE_TESTS = Counter(
    "rewardstack_code_tests_total",
    "Tests that programs were run on, by verdict; `fault` where the sandbox failed.",
    ["verdict"],
)
CODE_SECONDS = Counter("rewardstack_code_cpu_seconds_total", "Seconds of CPU that programs took, or slept too long.")
CODE_LAUNCHERS = Counter("rewardstack_code_launcher_restarts_total", "Launchers of programs that died over a test.")
CAUSES = Counter(
    "rewardstack_causes_total",
    "Samples that have no score of their own, by how it ended and why, in words that hold nothing of a sample.",
    ["route", "status", "cause"],
)
ITEM_SECONDS = Histogram(
    "rewardstack_item_seconds", "Time from a call to a sample's score.", ["route"], buckets=BUCKETS
)


def serve(port: int, collectors: Sequence[Collector]) -> None:
    """Answers `GET /metrics` for a process that counts alone and has no server, in a thread of its own.

    Args:
        port: to listen on, on every address.
        collectors: of what is counted elsewhere.

    Raises:
        SettingsError: the port cannot be had.
    """
    for collector in collectors:
        REGISTRY.register(collector)
    try:
        start_http_server(port)
    except OSError as error:
        message = f"WORKER_METRICS_PORT: port {port}: {error.strerror}; choose another, or 0 for none"
        raise SettingsError(message, "WORKER_METRICS_PORT") from error


def count_scores(scores: Iterable[Score]) -> None:
    """Counts the samples of a call."""
    # One step a counter and not one a sample, for each writes to a file; a histogram takes its values one by one.
    counts: Counts[tuple[str, str, bool]] = Counts()
    causes: Counts[tuple[str, str, str]] = Counts()
    for score in scores:
        route = score.source or "none"
        counts[route, score.status, score.cached] += 1
        if score.status != "ok":
            causes[route, score.status, cause_of(score.reason)] += 1
        _clock(route).observe(score.latency_ms / 1000)
    for (route, status, cached), count in counts.items():
        ITEMS.labels(route, status).inc(count)
        if cached:
            CACHED.labels(route).inc(count)
    for labels, count in causes.items():
        CAUSES.labels(*labels).inc(count)


def count_spent(route: str, usage: Usage) -> None:
    """Counts a request to a judge or an embedding server that is sent, or the tokens that a reply took."""
    if usage.requests:
        _spending(route)
        SENT.labels(route).inc(usage.requests)
        return
    COUNTED.labels(route).inc()
    TOKENS.labels(route, "prompt").inc(usage.prompt_tokens)
    TOKENS.labels(route, "completion").inc(usage.completion_tokens)


def count_unwritten(values: int) -> None:
    """Counts values that the result cache was to hold and does not."""
    UNWRITTEN.inc(values)


def count_distrusted(values: int) -> None:
    """Counts values that the result cache had and that were not believed."""
    DISTRUSTED.inc(values)


def count_compared(by: Iterable[str]) -> None:
    """Counts answers of mathematics, by what compared them."""
    for name, count in Counts(by).items():
        COMPARED.labels(name).inc(count)


def count_code(counts: Mapping[str, int]) -> None:
    """Counts the tests that a sample's program ran."""
    for name, count in counts.items():
        if name == "cpu_ms":
            CODE_SECONDS.inc(count / 1000)
        elif name == "launcher_died":
            CODE_LAUNCHERS.inc(count)
        else:
            CODE_TESTS.labels(name).inc(count)


@cache
def _spending(route: str) -> None:
    """Begins a route's counters of tokens at 0: a server that does not count them is then seen not to."""
    COUNTED.labels(route)
    for kind in ("prompt", "completion"):
        TOKENS.labels(route, kind)


@cache
def _clock(route: str) -> Histogram:
    """Where a route's seconds go. With it its counters begin, at 0: the first failure is then an increase."""
    for status in STATUSES:
        ITEMS.labels(route, status)
    CACHED.labels(route)
    return ITEM_SECONDS.labels(route)
