"""Prometheus counters of the server and its workers, and `GET /metrics` for workers.

Under gunicorn, each process writes its counts to files in PROMETHEUS_MULTIPROC_DIR. Set this variable before importing
this module.
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

from rewardstack.cause import Cause
from rewardstack.errors import SettingsError
from rewardstack.score import STATUSES, Score, Usage
from rewardstack_rules.metrics.rewards import count_rewards as count_rewards

BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

REQUESTS = Counter("rewardstack_requests_total", "Requests answered.", ["endpoint", "code"])
SECONDS = Histogram(
    "rewardstack_request_duration_seconds", "Time from a request to its answer.", ["endpoint"], buckets=BUCKETS
)
IN_PROGRESS = Gauge(
    "rewardstack_requests_in_progress", "Requests that are being answered.", multiprocess_mode="livesum"
)
LONGEST_STRETCH = Gauge(
    "rewardstack_event_loop_longest_stretch_seconds",
    "Longest time, since its start, for which a process that scores has handled no other sample.",
    multiprocess_mode="livemax",
)
SAMPLES = Counter("rewardstack_samples_total", "Samples scored, by route and status.", ["route", "status"])
CACHE_HITS = Counter("rewardstack_cache_hits_total", "Samples whose score was read from the cache.", ["route"])
MODEL_REQUESTS = Counter(
    "rewardstack_model_requests_total",
    "Requests sent to model servers (judges, reward models, embedding servers), including retries, by route.",
    ["route"],
)
TOKEN_REPORTS = Counter(
    "rewardstack_model_replies_counted_total",
    "Replies of model servers that reported their tokens. The tokens of other replies are not counted.",
    ["route"],
)
TOKENS = Counter(
    "rewardstack_model_tokens_total",
    "Tokens that model servers reported as read (`prompt`) and written (`completion`).",
    ["route", "kind"],
)
CACHE_WRITE_ERRORS = Counter(
    "rewardstack_cache_write_errors_total",
    "Values that were not written to the result cache: Redis refused them, or too many were pending.",
)
CACHE_REFUSED = Counter(
    "rewardstack_cache_refused_total",
    "Values in the result cache that were rejected: malformed, out of range, or not signed with the secret.",
)
COMPARISONS = Counter(
    "rewardstack_math_comparisons_total",
    "Math answers compared in isolated processes, by result: `values` if compared, `undecided` if a limit was reached.",
    ["result"],
)
CODE_TESTS = Counter(
    "rewardstack_code_tests_total",
    "Tests of programs, by verdict; `fault` if the sandbox failed.",
    ["verdict"],
)
CODE_SECONDS = Counter(
    "rewardstack_code_cpu_seconds_total",
    "CPU seconds of programs. For a program that slept too long, the time that it was allowed to sleep.",
)
CODE_LAUNCHERS = Counter(
    "rewardstack_code_launcher_restarts_total", "Program launchers that died during a test and were restarted."
)
CAUSES = Counter(
    "rewardstack_causes_total",
    "Samples whose status is not `ok`, by status and cause.",
    ["route", "status", "cause"],
)
ITEM_SECONDS = Histogram(
    "rewardstack_sample_duration_seconds", "Time from a call to a sample's score.", ["route"], buckets=BUCKETS
)


def serve(port: int, collectors: Sequence[Collector]) -> None:
    """Serve `GET /metrics` from a background thread, for a single process without a web server.

    Args:
        port: port to listen on, on every address.
        collectors: collectors of other metrics to serve, which are queried for each scrape.

    Raises:
        SettingsError: the port cannot be used.
    """
    for collector in collectors:
        REGISTRY.register(collector)
    try:
        start_http_server(port)
    except OSError as error:
        message = f"WORKER_METRICS_PORT: port {port}: {error.strerror}; choose another, or 0 for none"
        raise SettingsError(message, "WORKER_METRICS_PORT") from error


def count_scores(scores: Sequence[Score], routes: Sequence[str]) -> None:
    """Count scored samples, by route, status and cause, and observe their latencies.

    Args:
        scores: the scores.
        routes: the label `route` of each score.
    """
    # Increment each counter once, not once per sample, because an increment writes to a file. Latencies are observed
    # one by one, because a histogram has no method for several values.
    counts: Counts[tuple[str, str, bool]] = Counts()
    causes: Counts[tuple[str, str, str]] = Counts()
    for score, route in zip(scores, routes, strict=True):
        counts[route, score.status, score.cached] += 1
        if score.status != "ok":
            causes[route, score.status, (score.cause or Cause.OTHER).value] += 1
        _latency_histogram(route).observe(score.latency_ms / 1000)
    for (route, status, cached), count in counts.items():
        SAMPLES.labels(route, status).inc(count)
        if cached:
            CACHE_HITS.labels(route).inc(count)
    for labels, count in causes.items():
        CAUSES.labels(*labels).inc(count)


def count_usage(route: str, usage: Usage) -> None:
    """Count either the requests to a model server, or the tokens of one reply.

    Args:
        route: the label `route`.
        usage: the number of requests, with 0 tokens; or the tokens of one reply, with 0 requests.
    """
    if usage.requests:
        _start_token_counters(route)
        MODEL_REQUESTS.labels(route).inc(usage.requests)
        return
    TOKEN_REPORTS.labels(route).inc()
    TOKENS.labels(route, "prompt").inc(usage.prompt_tokens)
    TOKENS.labels(route, "completion").inc(usage.completion_tokens)


def count_cache_write_errors(values: int) -> None:
    """Count values that could not be written to the result cache."""
    CACHE_WRITE_ERRORS.inc(values)


def count_rejected_cache_values(values: int) -> None:
    """Count values from the result cache that were rejected."""
    CACHE_REFUSED.inc(values)


def count_stretch(seconds: float) -> None:
    """Note the longest time for which the event loop has handled no other sample."""
    LONGEST_STRETCH.set(seconds)


def count_comparisons(by: Iterable[str]) -> None:
    """Count comparisons of math answers, by result: `values` or `undecided`."""
    for name, count in Counts(by).items():
        COMPARISONS.labels(name).inc(count)


def count_code(counts: Mapping[str, int]) -> None:
    """Count the tests of a sample's program, their CPU time, and launchers that died."""
    for name, count in counts.items():
        if name == "cpu_ms":
            CODE_SECONDS.inc(count / 1000)
        elif name == "launcher_died":
            CODE_LAUNCHERS.inc(count)
        else:
            CODE_TESTS.labels(name).inc(count)


@cache
def _start_token_counters(route: str) -> None:
    """Start a route's token counters at 0, so that they exist even if a model server reports no tokens."""
    TOKEN_REPORTS.labels(route)
    for kind in ("prompt", "completion"):
        TOKENS.labels(route, kind)


@cache
def _latency_histogram(route: str) -> Histogram:
    """Return a route's latency histogram.

    The first call for a route also starts its counters at 0, so that Prometheus sees the first failure in a later batch
    as an increase.
    """
    for status in STATUSES:
        SAMPLES.labels(route, status)
    CACHE_HITS.labels(route)
    return ITEM_SECONDS.labels(route)
