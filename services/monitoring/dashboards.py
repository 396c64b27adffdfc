"""Define the Grafana dashboards. `python -m services.monitoring.dashboards` writes their JSON files."""

from __future__ import annotations

import json
from pathlib import Path

from services.monitoring.panels import Dashboard, Panel, Query, Row
from services.stack.rundir import CHART_FILES

FOLDER = CHART_FILES / "monitoring"
SAMPLES_TOTAL, REQUESTS, CACHE_HITS = (
    "rewardstack_samples_total",
    "rewardstack_requests_total",
    "rewardstack_cache_hits_total",
)
REWARD = "rewardstack_reward"
CLIENT_REQUESTS = 'endpoint!~"/health|/ready|/metrics"'
"""Prometheus selector for requests of clients, without those of probes."""


def rate(metric: str, by: str = "") -> str:
    """Return the query for the rate per second of a counter, summed over all replicas.

    Args:
        metric: name of the counter, with its selector.
        by: labels to keep.
    """
    return f"sum{f' by ({by})' if by else ''} (rate({metric}[$__rate_interval]))"


def share(part: str, whole: str, by: str = "") -> str:
    """Return the query for the ratio of two counters' rates. It has no value while `whole` does not increase."""
    return f"{rate(part, by)} / {rate(whole, by)}"


def quantile(part: float, histogram: str, by: str = "") -> str:
    """Return the query for a quantile of a histogram over all replicas.

    Args:
        part: the quantile, from 0 to 1.
        histogram: name of the histogram without `_bucket`, with its selector.
        by: labels to keep.
    """
    name, brace, selector = histogram.partition("{")
    buckets = rate(f"{name}_bucket{brace}{selector}", f"le, {by}" if by else "le")
    return f"histogram_quantile({part}, {buckets})"


def quantiles(histogram: str) -> list[Query]:
    """Return queries for the 50 %, 95 % and 99 % quantiles of a histogram."""
    return [Query(quantile(part, histogram), f"{part:.0%}") for part in (0.5, 0.95, 0.99)]


def mean(histogram: str) -> str:
    """Return the query for the mean of a histogram over all replicas."""
    return f"{rate(f'{histogram}_sum')} / {rate(f'{histogram}_count')}"


def shared_gauge(metric: str, by: str = "") -> str:
    """Return the query for a gauge that has the same value in every reward server, such as the queue's length."""
    return f"max{f' by ({by})' if by else ''} ({metric})"


def shared_rate(metric: str, by: str) -> str:
    """Return the query for the rate per second of a counter that has the same value in every reward server."""
    return f"max by ({by}) (rate({metric}[$__rate_interval]))"


NOW = Row(
    "Now",
    [
        Panel("Samples a second", [Query(rate(SAMPLES_TOTAL))], "ops", kind="stat", width=4),
        Panel(
            "Failed",
            [Query(share(f'{SAMPLES_TOTAL}{{status="failed"}}', SAMPLES_TOTAL))],
            "percentunit",
            "Samples that the infrastructure did not score: above 1 % an alert.",
            kind="stat",
            width=4,
        ),
        Panel(
            "Fallback",
            [Query(share(f'{SAMPLES_TOTAL}{{status="fallback"}}', SAMPLES_TOTAL))],
            "percentunit",
            "Samples that a substitute scored, such as lexical similarity for the embedding server.",
            kind="stat",
            width=4,
        ),
        Panel("From the cache", [Query(share(CACHE_HITS, SAMPLES_TOTAL))], "percentunit", kind="stat", width=4),
        Panel(
            "95 % of samples within",
            [Query(quantile(0.95, "rewardstack_sample_duration_seconds"))],
            "s",
            kind="stat",
            width=4,
        ),
        Panel(
            "Alerts", [Query('count(ALERTS{alertstate="firing"}) or vector(0)')], text="Firing.", kind="stat", width=4
        ),
    ],
)

SAMPLES = Row(
    "Samples",
    [
        Panel("Samples a second", [Query(rate(SAMPLES_TOTAL, "route"), "{{route}}")], "ops"),
        Panel(
            "Without a score of their own",
            [Query(rate(f'{SAMPLES_TOTAL}{{status!="ok"}}', "route, status"), "{{route}} {{status}}")],
            "ops",
            "failed: the infrastructure. fallback: a substitute scored. unscored: the reference or the sample's shape.",
        ),
        Panel("Share from the cache", [Query(share(CACHE_HITS, SAMPLES_TOTAL, "route"), "{{route}}")], "percentunit"),
        Panel(
            "95 % of samples within",
            [Query(quantile(0.95, "rewardstack_sample_duration_seconds", "route"), "{{route}}")],
            "s",
            "From the call to the sample's score, the cache's included.",
        ),
        Panel(
            "Half of samples within",
            [Query(quantile(0.5, "rewardstack_sample_duration_seconds", "route"), "{{route}}")],
            "s",
        ),
        Panel(
            "Who scores",
            [Query(rate(SAMPLES_TOTAL, "job"), "{{job}}")],
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
            [
                Query(
                    f"({rate(f'{REWARD}_positive_total', 'route')} - {rate(f'{REWARD}_negative_total', 'route')})"
                    f" / {rate(f'{REWARD}_count', 'route')}",
                    "{{route}}",
                )
            ],
            text="Samples with the status ok or fallback, after shaping; scores from the cache included.",
        ),
        Panel(
            "Standard deviation",
            [
                Query(
                    f"sqrt(clamp_min({share(f'{REWARD}_squares_total', f'{REWARD}_count', 'route')} - "
                    f"(({rate(f'{REWARD}_positive_total', 'route')} - {rate(f'{REWARD}_negative_total', 'route')})"
                    f" / {rate(f'{REWARD}_count', 'route')}) ^ 2, 0))",
                    "{{route}}",
                )
            ],
            text="At 0 all rewards are equal, and there is nothing to learn.",
        ),
        Panel(
            "Groups without spread",
            [
                Query(
                    f"1 - {share(f'{REWARD}_groups_with_spread_total', f'{REWARD}_groups_total', 'route')}",
                    "{{route}}",
                )
            ],
            "percentunit",
            "Groups of the same prompt whose rewards are all equal: their GRPO advantages are 0.",
        ),
        Panel(
            "Share of zeros",
            [Query(share(f"{REWARD}_zeros_total", f"{REWARD}_count", "route"), "{{route}}")],
            "percentunit",
        ),
        Panel(
            "Share of the highest reward",
            [Query(share(f"{REWARD}_maxima_total", f"{REWARD}_count", "route"), "{{route}}")],
            "percentunit",
            "Of routes that have a highest reward.",
        ),
        Panel(
            "Parts",
            [
                Query(
                    f"({rate(f'{REWARD}_part_positive_total', 'route, part')} - "
                    f"{rate(f'{REWARD}_part_negative_total', 'route, part')})"
                    f" / {rate(f'{REWARD}_part_samples_total', 'route, part')}",
                    "{{route}} {{part}}",
                )
            ],
            text="Mean of each part of a composite, and shares of a rubric's points.",
        ),
        Panel(
            "Quartiles",
            [Query(quantile(part, REWARD, "route"), f"{{{{route}}}} {part:.0%}") for part in (0.25, 0.5, 0.75)],
            text="From the histogram, whose buckets come from the route's range.",
        ),
    ],
)

COST = Row(
    "What judges and embedding servers take",
    [
        Panel(
            "Requests a second",
            [Query(rate("rewardstack_model_requests_total", "route"), "{{route}}")],
            "reqps",
            "Each attempt; what the cache has takes none.",
        ),
        Panel(
            "Tokens a second",
            [Query(rate("rewardstack_model_tokens_total", "route, kind"), "{{route}} {{kind}}")],
            "ops",
        ),
        Panel(
            "Requests whose tokens are counted",
            [
                Query(
                    share("rewardstack_model_replies_counted_total", "rewardstack_model_requests_total", "route"),
                    "{{route}}",
                )
            ],
            "percentunit",
            "Of the others no reply says what they took: the server does not, or they failed.",
        ),
    ],
)

HTTP = Row(
    "Requests",
    [
        Panel(
            "Requests a second", [Query(rate(f"{REQUESTS}{{{CLIENT_REQUESTS}}}", "endpoint"), "{{endpoint}}")], "reqps"
        ),
        Panel("Status codes", [Query(rate(f"{REQUESTS}{{{CLIENT_REQUESTS}}}", "code"), "{{code}}")], "reqps"),
        Panel("Time to the answer", quantiles(f"rewardstack_request_duration_seconds{{{CLIENT_REQUESTS}}}"), "s"),
        Panel(
            "In progress",
            [Query("sum by (instance) (rewardstack_requests_in_progress)", "{{instance}}")],
            text="A server answers REWARD_WORKERS times REWARD_THREADS at once, and what waits for models; more wait.",
        ),
        Panel("Replicas that answer", [Query("sum by (job) (up)", "{{job}}")]),
        Panel(
            "Result cache",
            [
                Query(shared_gauge("rewardstack_cache_bytes"), "used"),
                Query(shared_gauge("rewardstack_cache_limit_bytes"), "limit"),
            ],
            "bytes",
            "At the limit the least recently used go first.",
        ),
    ],
)

VERIFIERS = Row(
    "Verification in processes that can be killed",
    [
        Panel(
            "Busy",
            [
                Query("sum by (pool) (rewardstack_verifier_busy)", "{{pool}}"),
                Query("sum(rewardstack_verifier_processes)", "processes"),
            ],
            text="Samples that take longer than 100 ms go to the slow pool, so they do not delay others.",
        ),
        Panel("Waiting", [Query("sum by (pool) (rewardstack_verifier_waiting)", "{{pool}}")]),
        Panel(
            "Killed a second",
            [Query(rate("rewardstack_verifier_killed_total", "reason"), "{{reason}}")],
            "ops",
            "timeout: past VERIFY_TIMEOUT. died: out of memory, or a fault in native code.",
        ),
        Panel("Replaced after their share of work, a second", [Query(rate("rewardstack_verifier_recycled_total"))]),
    ],
)

JOBS = Row(
    "Jobs",
    [
        Panel("Jobs", [Query(shared_gauge("rewardstack_jobs_open", "status"), "{{status}}")]),
        Panel(
            "Jobs that came and ended, a second", [Query(shared_rate("rewardstack_jobs_total", "event"), "{{event}}")]
        ),
        Panel("Workers", [Query(shared_gauge("rewardstack_job_workers"), "heard of in the last 30 s")]),
        Panel("Chunks that wait", [Query(shared_gauge("rewardstack_queue_chunks"), "chunks")]),
        Panel("Longest wait", [Query(shared_gauge("rewardstack_queue_oldest_seconds"), "head of the queue")], "s"),
        Panel(
            "Chunks a second",
            [Query(shared_rate("rewardstack_job_chunks_total", "event"), "{{event}}")],
            "ops",
            "retried: begun again, after a worker's death or a failure of the infrastructure.",
        ),
        Panel(
            "Samples a second",
            [Query(shared_rate("rewardstack_job_samples_total", "status"), "{{status}}")],
            "ops",
        ),
    ],
)

JUDGE = Row(
    "Judges and reward model (vLLM)",
    [
        Panel(
            "Requests",
            [
                Query("sum by (model_name) (vllm:num_requests_running)", "{{model_name}}: running"),
                Query("sum by (model_name) (vllm:num_requests_waiting)", "{{model_name}}: waiting"),
            ],
            text="More waiting than running, for long: another replica.",
        ),
        Panel("Time to the answer", quantiles("vllm:e2e_request_latency_seconds"), "s"),
        Panel("Time to the first token", quantiles("vllm:time_to_first_token_seconds"), "s"),
        Panel(
            "Tokens a second",
            [
                Query(rate("vllm:prompt_tokens_total"), "prompts"),
                Query(rate("vllm:generation_tokens_total"), "answers"),
            ],
        ),
        Panel(
            "Share of prompts from the prefix cache",
            [Query(share("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"))],
            "percentunit",
        ),
        Panel("Memory for keys and values in use", [Query("vllm:kv_cache_usage_perc", "{{instance}}")], "percentunit"),
        Panel(
            "Answers a second, by how they end",
            [Query(rate("vllm:request_success_total", "finished_reason"), "{{finished_reason}}")],
            "ops",
            "length: cut off; such an answer often has no verdict.",
        ),
        Panel("Preempted a second", [Query(rate("vllm:num_preemptions_total"))], "ops"),
    ],
)

EMBEDDING = Row(
    "Embedding server (TEI)",
    [
        Panel("Requests a second", [Query(rate("te_request_count", "method"), "{{method}}")], "reqps"),
        Panel("Inputs that wait", [Query("sum(te_queue_size)")]),
        Panel("Time to the answer", quantiles("te_request_duration"), "s"),
        Panel(
            "Mean time of an input",
            [
                Query(mean("te_embed_tokenization_duration"), "tokenizer"),
                Query(mean("te_embed_queue_duration"), "queue"),
                Query(mean("te_embed_inference_duration"), "model"),
            ],
            "s",
        ),
        Panel("Inputs in a batch", [Query(mean("te_batch_next_size"), "mean")]),
        Panel("Tokens of an input", [Query(mean("te_request_input_length"), "mean")]),
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


def main() -> None:
    """Write the dashboard files."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
