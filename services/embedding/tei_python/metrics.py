"""TEI's metrics, under TEI's names (prometheus_client would add `_total` to those of its counters)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

SECONDS = tuple(0.00001 * 1.5**power for power in range(1, 36))
"""Bounds of the buckets of every duration."""
POWERS = tuple(2.0**power for power in range(21))
"""Bounds of the buckets of what is counted in tokens or inputs, as far as each can reach."""
BATCH_SIZES = POWERS[:13]
PARTS = ("duration", "tokenization_duration", "queue_duration", "inference_duration")


class Histogram:
    """Counts values by size.

    Args:
        bounds: the largest value of each bucket, rising.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """One more value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> list[str]:
        """In Prometheus' text format."""
        lines = [f"# TYPE {name} histogram"]
        total = 0
        for bound, count in zip([*self._bounds, "+Inf"], self._counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{name}_sum {self._sum}", f"{name}_count {total}"]


class Metrics:
    """What the server counts. Everything but `queue_size` belongs to the event loop.

    Args:
        max_length: tokens that the model takes.
    """

    def __init__(self, max_length: int) -> None:
        self.queue_size = 0
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._histograms = {
            **{f"te_{of}_{part}": Histogram(SECONDS) for of in ("request", "embed") for part in PARTS},
            "te_request_input_length": Histogram([bound for bound in POWERS if bound <= max_length]),
            "te_batch_next_size": Histogram(BATCH_SIZES),
            "te_batch_next_tokens": Histogram(POWERS),
        }

    def asked(self, method: str) -> None:
        """A request came: `single` or `batch`."""
        self._counts["te_request_count", "method", method] += 1

    def answered(self, method: str, seconds: Sequence[float]) -> None:
        """It was answered.

        Args:
            method: `single` or `batch`.
            seconds: in the whole, in the tokenizer, in the queue, in the model.
        """
        self._counts["te_request_success", "method", method] += 1
        self._observe("request", seconds)

    def failed(self, why: str, times: int = 1) -> None:
        """Requests, or inputs, were refused, failed or dropped."""
        self._counts["te_request_failure", "err", why] += times

    def batch(self, inputs: int, tokens: int) -> None:
        """The model has run on a batch."""
        self._histograms["te_batch_next_size"].observe(inputs)
        self._histograms["te_batch_next_tokens"].observe(tokens)

    def embedded(self, tokens: int, seconds: Sequence[float]) -> None:
        """An input was embedded; `seconds` as in `answered`."""
        for name in ("te_embed_count", "te_embed_success"):
            self._counts[name, "", ""] += 1
        self._histograms["te_request_input_length"].observe(tokens)
        self._observe("embed", seconds)

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        lines = ["# TYPE te_queue_size gauge", f"te_queue_size {self.queue_size}"]
        known = ""
        for (name, label, value), count in sorted(self._counts.items()):
            if name != known:
                lines.append(f"# TYPE {name} counter")
                known = name
            lines.append(f'{name}{{{label}="{value}"}} {count}' if label else f"{name} {count}")
        for name, histogram in self._histograms.items():
            lines += histogram.lines(name)
        return "\n".join([*lines, ""])

    def _observe(self, of: str, seconds: Sequence[float]) -> None:
        for part, value in zip(PARTS, seconds, strict=True):
            self._histograms[f"te_{of}_{part}"].observe(value)
