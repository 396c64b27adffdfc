"""Declares the client's settings: names, defaults, kinds and help; needs only the standard library.

`settings` reads them from the environment. `make settings` loads this file by its path, to write `.env`,
`docs/settings.md`, the compose files and the Helm chart.
"""

from __future__ import annotations

from rewardstack_settings.kinds import (
    OPTIONAL_NAME,
    Files,
    Integer,
    Maybe,
    Number,
    OneOf,
    Pairs,
    RayActor,
    RedisUrl,
    Text,
    Urls,
    Word,
)
from rewardstack_settings.setting import Section, Setting, index_by_name

DURATION = Number(86_400, "a number of seconds")
SECRET = Word(r"\S*", "text without spaces")
HEADERS = Pairs(",", r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "api-key: KEY, NAME: VALUE (or one pair per line)")
QUERY = Pairs("&", r"[A-Za-z0-9._~-]+", "api-version=2024-10-21&NAME=VALUE")

CLIENT = ("client", "rules", "worker")
"""The programs that read most settings, because they run the client's pipeline: the client, the reward server (`rules`)
and its workers."""

TRANSCRIPTS = (
    *("auto", "none", "chatml", "llama3", "llama4", "gemma", "gemma4", "mistral", "deepseek", "seed", "harmony", "glm"),
    *("kimi", "minimax", "granite", "nemotron"),
)
"""The values of REWARDSTACK_TRANSCRIPT; a test compares them with `rewardstack_verifier.transcript.TRANSCRIPTS`."""

# One row per setting.
# fmt: off
CACHE = Section("Result cache", [
    Setting("REWARD_CACHE", "on", OneOf("on", "off"), CLIENT,
            "`off`: no cache in Redis or in processes; for the samples of a client with `off`, the reward server uses "
            "no cache either"),
    Setting("REWARD_CACHE_TTL", "604800", Integer(1, 10**9), CLIENT, "seconds that a result is cached (a week)"),
    Setting("REWARD_CACHE_SECRET", "", SECRET, CLIENT,
            "secret that signs cached results, the same for all who share the cache; results without a valid "
            "signature are scored again; empty: unsigned", secret=True),
    Setting("REWARD_CACHE_ITEMS", "100000", Integer(0, 10**9), CLIENT,
            "results cached in each process's memory; 0: none"),
])

RULES = Section("Reward server", [
    Setting("REWARD_TYPE", "math_verifier", Word(r"\S+", "the name of a reward function or route"), CLIENT,
            "default function of `/get_reward` and `rule_remote.py`; default route for OpenRLHF, slime and AReaL"),
    Setting("CODE_SANDBOX_URL", "", Urls(), ("up", *CLIENT),
            "equivalent servers that run programs for `code`, comma-separated; empty: the reward server runs them if "
            "`CODE=on`"),
    Setting("CODE_SANDBOX_API_KEY", "", Text(), CLIENT,
            "key for those servers only; `make up` generates one for its own sandbox", secret=True),
    Setting("REWARDSTACK_ROUTES", "", Files(is_list=True), ("up", *CLIENT),
            "files that define [routes](routing.md) and named judges, colon-separated"),
    Setting("REWARDSTACK_TRANSCRIPT", "auto", OneOf(*TRANSCRIPTS), CLIENT,
            "how to split a response that is a string into [turns](routing.md#responses-with-several-turns)"),
    Setting("REWARDSTACK_SAMPLE_LOG", "", Text(), CLIENT,
            "JSON lines file of scored samples with their texts ([sample log](operations.md#sample-log)); empty: none"),
    Setting("REWARDSTACK_SAMPLE_LOG_SHARE", "0.01", Number(1), CLIENT, "share of samples in that file, from 0 to 1"),
])

JUDGE = Section("LLM judge", [
    Setting("LLM_JUDGE_SERVER_URL", "", Urls(), ("up", *CLIENT),
            "base URLs of equivalent judges, comma-separated; if empty, `make up` uses the judge that it starts"),
    Setting("LLM_JUDGE_SERVER_API_KEY", "", Text(), (*CLIENT, "vllm-python", "vllm-docker"),
            "key for those judges only; the stack's own judge requires it, too", secret=True),
    Setting("LLM_JUDGE_HEADERS", "", HEADERS, CLIENT,
            "more headers for those judges only: `Name: value`, one per line or comma-separated", secret=True),
    Setting("LLM_JUDGE_QUERY", "", QUERY, CLIENT,
            "query parameters for those judges only, such as `api-version=2024-10-21`; servers log them, so no keys"),
    Setting("LLM_JUDGE_SERVER_TIMEOUT", "60", DURATION, CLIENT, "seconds a sample waits for a judge without progress"),
    Setting("LLM_JUDGE_SERVER_REFUSED_TIMEOUT", "", Maybe(DURATION), CLIENT,
            "seconds to wait while the judge refuses connections, e.g. in a restart; empty: LLM_JUDGE_SERVER_TIMEOUT"),
    Setting("LLM_JUDGE_MODEL", "", OPTIONAL_NAME, ("up", *CLIENT),
            "the judge's model; empty: the only one that it serves"),
    Setting("JUDGE_REVISION", "", Text(), CLIENT,
            "label of the judge's or reward model's version; with a new label, earlier cached scores are ignored"),
    Setting("REWARDSTACK_RUN_ID", "", Text(), CLIENT,
            "ID of the training run: verdicts that are not deterministic are cached for one run only, and costs are "
            "counted for one run; empty: for one process"),
    Setting("REWARDSTACK_MAX_REQUESTS", "0", Integer(0, 10**12), CLIENT,
            "[cap](costs.md#a-cap) on a run's requests to model servers; 0: none"),
    Setting("REWARDSTACK_MAX_TOKENS", "0", Integer(0, 10**15), CLIENT,
            "cap on the tokens that model servers report for a run; 0: none"),
])

REWARD_MODEL = Section("Reward model", [
    Setting("REWARD_MODEL_SERVER_URL", "", Urls(), ("up", *CLIENT),
            "base URLs of equivalent [reward models](reward_models.md), comma-separated"),
    Setting("REWARD_MODEL_SERVER_API_KEY", "", Text(), CLIENT, "key for those servers only", secret=True),
    Setting("REWARD_MODEL_SERVER_TIMEOUT", "60", DURATION, CLIENT,
            "seconds a sample waits for a reward model without progress"),
])

EMBEDDING = Section("Embedding server", [
    Setting("EMBEDDING_SERVER_URL", "", Urls(), ("up", *CLIENT),
            "base URLs of equivalent embedding servers, comma-separated; if empty, `make up` uses the server that it "
            "starts"),
    Setting("EMBEDDING_SERVER_API_KEY", "", Text(), (*CLIENT, "tei-docker", "tei-apptainer"),
            "key for those servers only; the stack's own server requires it, too", secret=True),
    Setting("EMBEDDING_SERVER_TIMEOUT", "30", DURATION, CLIENT,
            "seconds a sample waits for an embedding server without progress"),
    Setting("EMBEDDING_SERVER_REFUSED_TIMEOUT", "5", DURATION, CLIENT,
            "seconds to wait while the server refuses connections; then lexical similarity scores the samples"),
])

TRAINER = Section("The client", [
    Setting("REWARD_SERVER_URL", "", Urls(), ("client",), "base URLs of equivalent reward servers, comma-separated"),
    Setting("REWARD_SERVER_API_KEY", "", Text(), ("client",), "key for those servers only", secret=True),
    Setting("REWARD_SERVER_TIMEOUT", "60", DURATION, ("client",),
            "seconds a sample waits for a reward server without progress"),
    Setting("REWARD_SERVER_REFUSED_TIMEOUT", "", Maybe(DURATION), ("client",),
            "seconds to wait while the server refuses connections, e.g. in a restart; empty: REWARD_SERVER_TIMEOUT"),
    Setting("REWARD_CACHE_URL", "", RedisUrl(), CLIENT,
            "Redis of the result cache, such as `redis://localhost:6379/0`; empty: none; `make up` sets it for the "
            "reward server", secret=True),
    Setting("REWARDSTACK_ENDPOINTS", "", Files(), ("client",),
            "[file of servers and keys](#servers-that-move) that the client uses instead of the variables for them"),
    Setting("REWARDSTACK_MAX_RETRIES", "3", Integer(0, 100), ("client",),
            "retries of a request after an error (500) or an unreadable reply, if there is no other server to try"),
    Setting("REWARDSTACK_MAX_CONNECTIONS", "1028", Integer(1, 1_000_000), ("client",),
            "concurrent requests per endpoint"),
    Setting("REWARDSTACK_MAX_FAILURE_RATE", "1", Number(1), ("client",),
            "maximum share of a process's recent samples that may be `failed`; above it, scoring raises "
            "`FailureRateError`, which ends the run; 1: no limit"),
    Setting("REWARDSTACK_FAILURE_WINDOW", "1000", Integer(1, 10**6), ("client",),
            "number of recent samples to which REWARDSTACK_MAX_FAILURE_RATE applies; with 1000 and a rate of 0.5, the "
            "501st failure ends the run"),
    Setting("LLM_JUDGE_RAY_ACTOR", "", RayActor(), ("client",),
            "a judge that is a [Ray actor](ray.md), instead of LLM_JUDGE_SERVER_URL: `[NAMESPACE/]NAME`; the default "
            "namespace is `rewardstack`"),
], place="environment")

LAUNCHERS = Section("Launchers", [
    Setting("REWARD_NUM_ENGINES", "1", Integer(1, 1024), ("ray-judge",),
            "vLLM engines of a judge that is a [Ray actor](ray.md), each on its own GPUs"),
], place="environment")
# fmt: on

SECTIONS = (CACHE, RULES, JUDGE, REWARD_MODEL, EMBEDDING, TRAINER, LAUNCHERS)
TABLE = index_by_name(SECTIONS)
