"""Timeouts, pauses and thresholds of the transport.

Use them as `timing.NAME`, so that tests can change them here for all modules.
"""

from __future__ import annotations

# Connections
CONNECT_TIMEOUT = 5.0
"""Maximum seconds to open a connection."""
KEEPALIVE = 1.8
"""Seconds to keep an idle connection. Servers keep it longer (vLLM: 5 s), so no server closes it during reuse."""
LOOKUP_TIMEOUT = 2.0
"""Seconds to wait for name servers before the last known addresses of a host are used. If no addresses are known, the
wait has no limit."""

# Service discovery
VALID_FOR = 60.0
"""Seconds for which an answer is valid."""
RENEWAL = 30.0
"""Timeout in seconds of the request that renews an answer. If the request fails, the old answer stays valid for this
many more seconds."""
OPTIONAL_WAIT = 2.0
"""Maximum seconds that a caller waits for an optional answer. An answer is optional if the caller can continue without
it, e.g. with an outdated answer."""
OPTIONAL_WAIT_SHARE = 0.3
"""Maximum share of a caller's remaining time that the caller waits for an optional answer."""

# Silent endpoints and hedges
PROBE_AFTER = 2.0
"""Seconds without an answer after which a liveness probe is sent."""
HEALTH_TIMEOUT = 3.0
"""Timeout of the liveness probe in seconds. The probe succeeds with any HTTP reply."""
LOG_AFTER = 3.0
"""Seconds after which a failure is logged if requests still wait; shorter failures are not logged."""
MIN_STUCK = 2.0
"""Minimum seconds after which a request counts as stuck."""
FIRST_STUCK = 10.0
"""Seconds after which a request counts as stuck if no request with its path was answered yet, so that the usual latency
of the path is unknown. Half of the request's timeout is used instead if it is shorter."""
RECHECK_INTERVAL = 0.5
"""Seconds until the next check of a stuck request that cannot be hedged yet."""
STUCK_FACTOR = 2.0
"""A request is stuck once it has waited this many times as long as the slowest recent request with the same path."""
LATENCY_DECAY = 0.99
"""Each answer multiplies the slowest recent latency by this factor, so that old latencies lose their effect."""

# Concurrency limit and circuit breaker
FIRST_LIMIT = 64
"""Number of requests in flight from which the limit starts."""
GROWTH_SECONDS = 0.2
"""Minimum seconds between two doublings of the limit, and from the moment when all slots are first taken to the first
doubling."""
BACKOFF_FIRST = 0.2
BACKOFF_MAX = 5.0
"""Upper bounds of the first pause and of all pauses, in seconds; see `backoff`."""
EJECTION_FIRST = 1.0
EJECTION_MAX = 30.0
"""Upper bounds of the first pause and of all pauses, in seconds, if other endpoints are available."""
RETRY_AFTER_MAX = 30.0
"""Maximum seconds for which a server's Retry-After is honored."""
FAILURES_TO_OPEN = 3
"""Number of failures in a row that open the circuit."""
OVERLOADS_TO_OPEN = 10
"""Number of overload replies in a row that open the circuit if other endpoints are available."""

# Retries and hedges
RETRY_SHARE = 0.1
"""Number of retries that each request adds to the retry budget."""
RETRY_RESERVE = 10.0
"""Initial retry budget, in retries."""
MAX_EXCESS_HEDGES = 3
"""Number of requests by which hedges may exceed an endpoint's limit, because stuck requests may hold all its slots."""
HEDGE_INTERVAL = 1.0
"""Seconds between hedges while the retry budget is empty. Without hedges, requests to a server that hangs would wait
until their timeout, because only new requests refill the budget."""
LOADING_PAUSE = 2.5
"""Seconds to wait before the retry after a 404, because the model may still be loading."""

# Invalid replies
RETRY_PAUSE = 0.6
"""Maximum seconds to wait before the first retry after an invalid reply. Each further retry doubles the maximum; the
minimum is half of the maximum."""
FAULTY_AFTER = 3
"""Invalid replies in a row after which the endpoint counts as faulty and gets only one retry at a time."""
FAULTY_FOR = 5.0
"""Once a faulty endpoint has sent only invalid replies for this many seconds, requests to it are no longer retried."""
FAULTS_EXPIRE_AFTER = 30.0
"""Seconds without an invalid reply after which earlier invalid replies no longer count."""

# Outages
PROBE_TIMEOUT = 1.0
"""Timeout of a probe of an unavailable endpoint, in seconds."""
PROBE_PAUSES = 0.5, 5.0
"""Minimum and maximum seconds between two probes."""
PROBE_FACTOR = 5
"""Pause between two probes, as a multiple of the probe's duration."""
PROBING_TIMEOUT = 600.0
"""Seconds without a call after which probing stops."""
OUTDATED_AFTER = 10.0
"""Age in seconds at which a failure is outdated; a call then waits for a new probe, for at most `PROBE_TIMEOUT`."""
MAX_GAP = 0.5
"""A stall continues if the next request that times out was sent at most this many seconds after the last timeout.
Otherwise, a new stall begins."""
MIN_SHARE = 0.9
"""A call fails fast if a stall has lasted for this share of the call's timeout. The share is below 1, because a call
spends part of its timeout on other requests. A call that has spent this share of its timeout in a queue is no
longer sent to a stalled service."""
