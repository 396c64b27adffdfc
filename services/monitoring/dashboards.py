"""Define the Grafana dashboards. `python -m services.monitoring.dashboards` writes their JSON files.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from services.stack.rundir import CHART_FILES

FOLDER = CHART_FILES / "monitoring"
SOURCE = {"type": "prometheus", "uid": "prometheus"}
"""The Prometheus data source that Grafana's `provisioning/datasources` defines."""
TAG = "rewardstack"
COLUMNS = 24
"""Number of columns of a dashboard."""
SIZES = {"stat": (4, 4), "timeseries": (8, 8)}
"""Width and height of a panel, by kind. `stat` shows the latest value; `timeseries` shows lines over time."""
OPTIONS: Mapping[str, Any] = {
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "area"},
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
}
SCHEMA = 39
"""Schema version of Grafana 11; later versions of Grafana convert it."""
LABELS = re.compile(r"by \((?:le\b(?:, )?)?(.*?)\)")
"""Matches the labels that a query keeps, except `le`, the label of histogram buckets."""

SAMPLES_TOTAL, REQUESTS, CACHE_HITS = (
    "rewardstack_samples_total",
    "rewardstack_requests_total",
    "rewardstack_cache_hits_total",
)
REWARD = "rewardstack_reward"
SAMPLE_SECONDS = "rewardstack_sample_duration_seconds"
CLIENT_REQUESTS = 'endpoint!~"/health|/ready|/metrics"'
"""Prometheus selector for requests of clients, which excludes probes."""


@dataclass(frozen=True)
class Panel:
    """A panel of a dashboard.

    Args:
        title: title of the panel.
        query: a PromQL query, or PromQL queries by the names of their lines in the graph. The lines of a single query
            are named after its labels. Grafana fills in `$__rate_interval` in queries, and labels in double braces,
            such as `{{route}}`, in line names.
        unit: unit in Grafana's notation, such as `s`, `percentunit` or `short`.
        text: description, which Grafana shows on hover.
        kind: `timeseries` or `stat`.
    """

    title: str
    query: str | Mapping[str, str]
    unit: str = "short"
    text: str = ""
    kind: str = "timeseries"

    @property
    def queries(self) -> Mapping[str, str]:
        """Queries by line name, in drawing order."""
        if not isinstance(self.query, str):
            return self.query
        labels = LABELS.search(self.query)
        return {re.sub(r"\w+", r"{{\g<0>}}", labels[1].replace(",", "")) if labels else "": self.query}

    def json(self, ident: int, place: Mapping[str, int]) -> dict[str, Any]:
        """Return the panel as Grafana JSON with an id and a position."""
        return {
            "id": ident,
            "type": self.kind,
            "title": self.title,
            "description": self.text,
            "datasource": SOURCE,
            "gridPos": place,
            "fieldConfig": {"defaults": {"unit": self.unit, "min": 0}, "overrides": []},
            "options": OPTIONS[self.kind],
            "targets": [
                {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": expression, "legendFormat": name}
                for at, (name, expression) in enumerate(self.queries.items())
            ],
        }


class Row(NamedTuple):
    """Panels under a heading, from left to right on one or more lines."""

    title: str
    panels: Sequence[Panel]


class Dashboard(NamedTuple):
    """A Grafana dashboard. `name` is the name of the JSON file, and part of the uid."""

    name: str
    title: str
    rows: Sequence[Row]

    def json(self) -> dict[str, Any]:
        """Return the dashboard as Grafana JSON."""
        return {
            "uid": f"rewardstack-{self.name}",
            "title": self.title,
            "tags": [TAG],
            "schemaVersion": SCHEMA,
            "editable": False,
            "refresh": "15s",
            "time": {"from": "now-1h", "to": "now"},
            "links": [{"type": "dashboards", "tags": [TAG], "title": TAG, "asDropdown": False, "keepTime": True}],
            "panels": list(self._place_panels()),
        }

    def _place_panels(self) -> Iterator[dict[str, Any]]:
        """Yield row headings and panels as Grafana JSON, each with its id and position."""
        ident, top = 1, 0
        for row in self.rows:
            place = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
            yield {"id": ident, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
            ident, top, left, height = ident + 1, top + 1, 0, 0
            for panel in row.panels:
                panel_width, panel_height = SIZES[panel.kind]
                if left + panel_width > COLUMNS:
                    top, left, height = top + height, 0, 0
                yield panel.json(ident, {"h": panel_height, "w": panel_width, "x": left, "y": top})
                ident, left, height = ident + 1, left + panel_width, max(height, panel_height)
            top += height


def aggregate(function: str, expression: str, by: str = "") -> str:
    """Return the query that aggregates an expression over the replicas of a service, and keeps the labels in `by`.

    Use the function `max` for a shared value that every replica reports, such as the length of the queue, because a sum
    would count it once per replica. For other values, use `sum`.
    """
    return f"{function}{f' by ({by})' if by else ''} ({expression})"


def rate(metric: str, by: str = "", function: str = "sum") -> str:
    """Return the query for the rate per second of a counter; `metric` is its name, with a selector if needed."""
    return aggregate(function, f"rate({metric}[$__rate_interval])", by)


def share(part: str, whole: str, by: str = "") -> str:
    """Return the query for the ratio of two counters' rates. It has no value while `whole` does not increase."""
    return f"{rate(part, by)} / {rate(whole, by)}"


def quantile(part: float, histogram: str, by: str = "") -> str:
    """Return the query for a quantile (0 to 1) over all replicas; `histogram` is the name without `_bucket`."""
    name, brace, selector = histogram.partition("{")
    buckets = rate(f"{name}_bucket{brace}{selector}", f"le, {by}" if by else "le")
    return f"histogram_quantile({part}, {buckets})"


def quantiles(histogram: str) -> dict[str, str]:
    """Return queries for the 50 %, 95 % and 99 % quantiles of a histogram."""
    return {f"{part:.0%}": quantile(part, histogram) for part in (0.5, 0.95, 0.99)}


def mean(histogram: str) -> str:
    """Return the query for the mean of a histogram over all replicas."""
    return share(f"{histogram}_sum", f"{histogram}_count")


def signed_mean(prefix: str, count: str, by: str) -> str:
    """Return the query for the mean of rewards.

    The sums of the positive and of the negative rewards are separate counters, because a counter cannot decrease. Their
    names begin with `prefix`. `count` is the counter of rewards.
    """
    return f"({rate(f'{prefix}_positive_total', by)} - {rate(f'{prefix}_negative_total', by)}) / {rate(count, by)}"


MEAN_REWARD = signed_mean(REWARD, f"{REWARD}_count", "route")
stat, shared_gauge, shared_rate = partial(Panel, kind="stat"), partial(aggregate, "max"), partial(rate, function="max")

NOW = Row(
    "Now",
    [
        stat("Samples per second", rate(SAMPLES_TOTAL), "ops"),
        stat(
            "Failed",
            share(f'{SAMPLES_TOTAL}{{status="failed"}}', SAMPLES_TOTAL),
            "percentunit",
            "Samples without a score because a service failed. An alert fires above 1 %.",
        ),
        stat(
            "Fallback",
            share(f'{SAMPLES_TOTAL}{{status="fallback"}}', SAMPLES_TOTAL),
            "percentunit",
            "Samples with a substitute score, such as lexical similarity in place of the embedding server's.",
        ),
        stat("From the cache", share(CACHE_HITS, SAMPLES_TOTAL), "percentunit"),
        stat("95 % of samples within", quantile(0.95, SAMPLE_SECONDS), "s"),
        stat("Alerts", 'count(ALERTS{alertstate="firing"}) or vector(0)', text="Alerts that are firing."),
    ],
)

SAMPLES = Row(
    "Samples",
    [
        Panel("Samples per second", rate(SAMPLES_TOTAL, "route"), "ops"),
        Panel(
            "Samples with a status other than ok",
            rate(f'{SAMPLES_TOTAL}{{status!="ok"}}', "route, status"),
            "ops",
            "failed: a service did not answer. fallback: the score is a substitute. unscored: the sample is invalid.",
        ),
        Panel("Share from the cache", share(CACHE_HITS, SAMPLES_TOTAL, "route"), "percentunit"),
        Panel(
            "95 % of samples within",
            quantile(0.95, SAMPLE_SECONDS, "route"),
            "s",
            "From the call to the sample's score, including scores from the cache.",
        ),
        Panel("Half of samples within", quantile(0.5, SAMPLE_SECONDS, "route"), "s"),
        Panel(
            "Samples per second by service",
            rate(SAMPLES_TOTAL, "job"),
            "ops",
            "The reward servers (rules), and the workers of jobs.",
        ),
    ],
)

REWARDS = Row(
    "Rewards",
    [
        Panel(
            "Mean reward",
            MEAN_REWARD,
            text="Samples with the status ok or fallback, after shaping; scores from the cache included.",
        ),
        Panel(
            "Standard deviation",
            f"sqrt(clamp_min({share(f'{REWARD}_squares_total', f'{REWARD}_count', 'route')} - ({MEAN_REWARD}) ^ 2, 0))",
            text="At 0, all rewards are equal, and there is nothing to learn.",
        ),
        Panel(
            "Groups without spread",
            f"1 - {share(f'{REWARD}_groups_with_spread_total', f'{REWARD}_groups_total', 'route')}",
            "percentunit",
            "Groups of the same prompt whose rewards are all equal: their GRPO advantages are 0.",
        ),
        Panel("Share of zeros", share(f"{REWARD}_zeros_total", f"{REWARD}_count", "route"), "percentunit"),
        Panel(
            "Share with the highest reward",
            share(f"{REWARD}_maxima_total", f"{REWARD}_count", "route"),
            "percentunit",
            "Only routes whose rewards have an upper bound.",
        ),
        Panel(
            "Parts",
            signed_mean(f"{REWARD}_part", f"{REWARD}_part_samples_total", "route, part"),
            text="Mean value of each part of a composite, and of each criterion of a rubric.",
        ),
        Panel(
            "Quartiles",
            {f"{{{{route}}}} {part:.0%}": quantile(part, REWARD, "route") for part in (0.25, 0.5, 0.75)},
            text="Estimated from a histogram.",
        ),
    ],
)

COST = Row(
    "Cost of model servers",
    [
        Panel(
            "Requests per second",
            rate("rewardstack_model_requests_total", "route"),
            "reqps",
            "Every attempt counts; scores from the cache need no request.",
        ),
        Panel("Tokens per second", rate("rewardstack_model_tokens_total", "route, kind"), "ops"),
        Panel(
            "Requests whose tokens are counted",
            share("rewardstack_model_replies_counted_total", "rewardstack_model_requests_total", "route"),
            "percentunit",
            "The other requests failed, or their server does not report tokens.",
        ),
    ],
)

HTTP = Row(
    "Requests",
    [
        Panel("Requests per second", rate(f"{REQUESTS}{{{CLIENT_REQUESTS}}}", "endpoint"), "reqps"),
        Panel("Status codes", rate(f"{REQUESTS}{{{CLIENT_REQUESTS}}}", "code"), "reqps"),
        Panel("Time to the answer", quantiles(f"rewardstack_request_duration_seconds{{{CLIENT_REQUESTS}}}"), "s"),
        Panel(
            "In progress",
            "sum by (instance) (rewardstack_requests_in_progress)",
            text="At most REWARD_WORKERS x REWARD_THREADS per server, not counting requests that wait for models.",
        ),
        Panel("Replicas that answer", "sum by (job) (up)"),
        Panel(
            "Result cache",
            {
                "used": shared_gauge("rewardstack_cache_bytes"),
                "limit": shared_gauge("rewardstack_cache_limit_bytes"),
            },
            "bytes",
            "At the limit, the least recently used scores are removed.",
        ),
    ],
)

VERIFIERS = Row(
    "Verification in processes that can be killed",
    [
        Panel(
            "Busy",
            {
                "{{pool}}": "sum by (pool) (rewardstack_verifier_busy)",
                "processes": "sum(rewardstack_verifier_processes)",
            },
            text="Samples that take longer than 100 ms go to the slow pool, so they do not delay others.",
        ),
        Panel("Waiting", "sum by (pool) (rewardstack_verifier_waiting)"),
        Panel(
            "Killed per second",
            rate("rewardstack_verifier_killed_total", "reason"),
            "ops",
            "timeout: past VERIFY_TIMEOUT. died: out of memory, or a fault in native code.",
        ),
        Panel("Replaced after many samples, per second", rate("rewardstack_verifier_recycled_total")),
    ],
)

JOBS = Row(
    "Jobs",
    [
        Panel("Jobs", shared_gauge("rewardstack_jobs_open", "status")),
        Panel("Jobs submitted and ended, per second", shared_rate("rewardstack_jobs_total", "event")),
        Panel("Workers", {"seen in the last 30 s": shared_gauge("rewardstack_job_workers")}),
        Panel("Chunks that wait", {"chunks": shared_gauge("rewardstack_queue_chunks")}),
        Panel("Longest wait", {"head of the queue": shared_gauge("rewardstack_queue_oldest_seconds")}, "s"),
        Panel(
            "Chunks per second",
            shared_rate("rewardstack_job_chunks_total", "event"),
            "ops",
            "retried: started again, after a worker died or a service did not answer.",
        ),
        Panel("Samples per second", shared_rate("rewardstack_job_samples_total", "status"), "ops"),
    ],
)

JUDGE = Row(
    "Judges and reward model (vLLM)",
    [
        Panel(
            "Requests",
            {
                "{{model_name}}: running": "sum by (model_name) (vllm:num_requests_running)",
                "{{model_name}}: waiting": "sum by (model_name) (vllm:num_requests_waiting)",
            },
            text="If more requests are waiting than running for minutes, add a replica.",
        ),
        Panel("Time to the answer", quantiles("vllm:e2e_request_latency_seconds"), "s"),
        Panel("Time to the first token", quantiles("vllm:time_to_first_token_seconds"), "s"),
        Panel(
            "Tokens per second",
            {"prompts": rate("vllm:prompt_tokens_total"), "answers": rate("vllm:generation_tokens_total")},
        ),
        Panel(
            "Share of prompts from the prefix cache",
            share("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
            "percentunit",
        ),
        Panel("KV cache in use", {"{{instance}}": "vllm:kv_cache_usage_perc"}, "percentunit"),
        Panel(
            "Answers per second, by finish reason",
            rate("vllm:request_success_total", "finished_reason"),
            "ops",
            "length: the answer was cut off; it often has no verdict.",
        ),
        Panel("Preempted per second", rate("vllm:num_preemptions_total"), "ops"),
    ],
)

EMBEDDING = Row(
    "Embedding server (TEI)",
    [
        Panel("Requests per second", rate("te_request_count", "method"), "reqps"),
        Panel("Inputs that wait", "sum(te_queue_size)"),
        Panel("Time to the answer", quantiles("te_request_duration"), "s"),
        Panel(
            "Mean time per input",
            {
                "tokenizer": mean("te_embed_tokenization_duration"),
                "queue": mean("te_embed_queue_duration"),
                "model": mean("te_embed_inference_duration"),
            },
            "s",
        ),
        Panel("Inputs in a batch", {"mean": mean("te_batch_next_size")}),
        Panel("Tokens of an input", {"mean": mean("te_request_input_length")}),
    ],
)

DASHBOARDS = (
    Dashboard("scores", "Scores", [NOW, REWARDS, SAMPLES, COST, HTTP]),
    Dashboard("jobs", "Verification and jobs", [VERIFIERS, JOBS]),
    Dashboard("models", "Model servers", [JUDGE, EMBEDDING]),
)


def files() -> dict[Path, str]:
    """Return the JSON text of each dashboard by the path of its file."""
    return {FOLDER / f"{board.name}.json": json.dumps(board.json(), indent=2) + "\n" for board in DASHBOARDS}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
