"""The client's settings: names, defaults, kinds and help; needs only the standard library.

`settings` reads them from the environment. `make settings` loads this file by its path, to write `.env` and the pages
that list all settings.
"""

from __future__ import annotations

from rewardstack_settings.kinds import (
    OPTIONAL_NAME,
    Files,
    Maybe,
    Number,
    OneOf,
    Pairs,
    RayActor,
    RedisUrl,
    Text,
    Urls,
    Whole,
    Word,
)
from rewardstack_settings.setting import Section, Setting, by_name

DURATION = Number(86_400, "a number of seconds")
REFUSED = "seconds that calls wait for {} that refuses connections, as one does that restarts"
SECRET = Word(r"\S*", "text without spaces")
HEADERS = Pairs(",", r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "api-key: KEY, or one such pair a line")
QUERY = Pairs("&", r"[A-Za-z0-9._~-]+", "api-version=2024-10-21&NAME=VALUE")

CLIENT = ("client", "rules", "worker")
"""The programs that read a setting: the reward server and its workers run the client's pipeline, too."""

# One row per setting.
# fmt: off
CACHE = Section("Result cache", [
    Setting("REWARD_CACHE", "on", OneOf("on", "off"), CLIENT,
            "`off`: no result and no vector is read from a cache or kept in one, in Redis or in a process; a client "
            "that has it off asks the reward server for the same"),
    Setting("REWARD_CACHE_TTL", "604800", Whole(1, 10**9), CLIENT, "seconds a result stays in the cache (a week)"),
    Setting("REWARD_CACHE_SECRET", "", SECRET, CLIENT,
            "secret that signs results in the cache, the same for all who share it; a result without the right "
            "signature is computed again; empty for no signatures", secret=True),
    Setting("REWARD_CACHE_ITEMS", "100000", Whole(0, 10**9), CLIENT,
            "results that each process keeps in front of Redis; 0 for none"),
])

RULES = Section("Reward server", [
    Setting("REWARD_TYPE", "math_verifier", Word(r"\S+", "the name of a reward function or route"), CLIENT,
            "reward function of a `/get_reward` request that names none, and of `rule_remote.py`; "
            "route of `trainers/openrlhf.py`, and of samples of slime and AReaL that name none"),
    Setting("CODE_SANDBOX_URL", "", Urls(), ("up", *CLIENT),
            "base URLs of equivalent servers that run the policy's programs for the reward function `code`, separated "
            "by commas; empty: the reward server runs them itself, if CODE is on"),
    Setting("REWARDSTACK_ROUTES", "", Files(several=True), ("up", *CLIENT),
            "files of further routes, and of judges by name, separated by colons"),
    Setting("REWARDSTACK_SAMPLE_LOG", "", Text(), CLIENT,
            "file to which scored samples are written as JSON lines, with their texts "
            "([operations](operations.md#sample-log)); empty for none"),
    Setting("REWARDSTACK_SAMPLE_LOG_SHARE", "0.01", Number(1), CLIENT,
            "share of the samples that are written to it, from 0 to 1"),
])

JUDGE = Section("LLM judge", [
    Setting("LLM_JUDGE_SERVER_URL", "", Urls(), ("up", *CLIENT),
            "base URLs of equivalent LLM judges, separated by commas; for `make up` external ones, empty for the "
            "stack's own"),
    Setting("LLM_JUDGE_SERVER_API_KEY", "", Text(), (*CLIENT, "vllm-python", "vllm-docker"),
            "key that is sent to those judges, and to no other server; the stack's own asks for it", secret=True),
    Setting("LLM_JUDGE_HEADERS", "", HEADERS, CLIENT,
            "headers that those judges are sent beside it, and no other server: `Name: value`, a line each, or "
            "separated by commas", secret=True),
    Setting("LLM_JUDGE_QUERY", "", QUERY, CLIENT,
            "query parameters that those judges are sent, and no other server, such as `api-version=2024-10-21`; "
            "no place for a key, for servers write it into their logs"),
    Setting("LLM_JUDGE_SERVER_TIMEOUT", "60", DURATION, CLIENT,
            "seconds a sample may wait for a judge without progress"),
    Setting("LLM_JUDGE_SERVER_REFUSED_TIMEOUT", "", Maybe(DURATION), CLIENT,
            f"{REFUSED.format('a judge')}; empty: LLM_JUDGE_SERVER_TIMEOUT"),
    Setting("LLM_JUDGE_MODEL", "", OPTIONAL_NAME, ("up", *CLIENT),
            "the model that judges; empty: the one that it serves"),
    Setting("JUDGE_REVISION", "", Text(), CLIENT,
            "your name for the state of the judge; another name, and no earlier verdict is read from the cache"),
    Setting("REWARDSTACK_RUN_ID", "", Text(), CLIENT,
            "training run within which a stochastic judge's verdict is remembered, and whose requests and tokens are "
            "counted together; empty: within the process"),
    Setting("REWARDSTACK_MAX_REQUESTS", "0", Whole(0, 10**12), CLIENT,
            "requests to judges and embedding servers that a run may send; once they are, what needs another is an "
            "error (503 of the reward server) where `on_error` does not say otherwise ([costs](costs.md)); 0: any "
            "number"),
    Setting("REWARDSTACK_MAX_TOKENS", "0", Whole(0, 10**15), CLIENT,
            "so for tokens that these servers read and write, by their own count; 0: any number"),
])

REWARD_MODEL = Section("Reward model", [
    Setting("REWARD_MODEL_SERVER_URL", "", Urls(), ("up", *CLIENT),
            "base URLs of equivalent reward models ([reward models](reward_models.md)), separated by commas"),
    Setting("REWARD_MODEL_SERVER_API_KEY", "", Text(), CLIENT,
            "key that is sent to those servers, and to no other", secret=True),
    Setting("REWARD_MODEL_SERVER_TIMEOUT", "60", DURATION, CLIENT,
            "seconds a sample may wait for a reward model without progress"),
])

EMBEDDING = Section("Embedding server", [
    Setting("EMBEDDING_SERVER_URL", "", Urls(), ("up", *CLIENT),
            "base URLs of equivalent embedding servers, separated by commas; for `make up` external ones, empty "
            "for the stack's own"),
    Setting("EMBEDDING_SERVER_API_KEY", "", Text(), (*CLIENT, "tei-docker", "tei-apptainer"),
            "key that is sent to those servers, and to no other; the stack's own asks for it", secret=True),
    Setting("EMBEDDING_SERVER_TIMEOUT", "30", DURATION, CLIENT,
            "seconds a sample may wait for an embedding server without progress"),
    Setting("EMBEDDING_SERVER_REFUSED_TIMEOUT", "5", DURATION, CLIENT,
            f"{REFUSED.format('an embedding server')}; short, because lexical similarity takes its place"),
])

TRAINER = Section("The client", [
    Setting("REWARD_SERVER_URL", "", Urls(), ("client",),
            "base URLs of equivalent reward servers, separated by commas"),
    Setting("REWARD_SERVER_API_KEY", "", Text(), ("client",),
            "key that is sent to those servers, and to no other", secret=True),
    Setting("REWARD_SERVER_TIMEOUT", "60", DURATION, ("client",), "seconds a sample may wait without progress"),
    Setting("REWARD_SERVER_REFUSED_TIMEOUT", "", Maybe(DURATION), ("client",),
            f"{REFUSED.format('a reward server')}; empty: REWARD_SERVER_TIMEOUT"),
    Setting("REWARD_CACHE_URL", "", RedisUrl(), CLIENT,
            "Redis that holds results, such as `redis://localhost:6379/0`; empty for none; `make up` "
            "sets the reward server's", secret=True),
    Setting("REWARDSTACK_ENDPOINTS", "", Files(), ("client",),
            "a file, your own and with mode 600, that names servers and their keys in place of these variables, and is "
            "followed while they move; empty for none"),
    Setting("REWARDSTACK_MAX_RETRIES", "3", Whole(0, 100), ("client",),
            "further attempts for a request whose replies are errors (500) or cannot be read, where there is no other "
            "server to ask"),
    Setting("REWARDSTACK_MAX_CONNECTIONS", "1028", Whole(1, 1_000_000), ("client",),
            "requests in flight to one endpoint"),
    Setting("REWARDSTACK_MAX_FAILURE_RATE", "1", Number(1), ("client",),
            "share of a trainer process's last samples that may have the status `failed`; beyond it scoring raises "
            "`FailureRateError`, which names the most frequent reason and ends the run; 1: never"),
    Setting("REWARDSTACK_FAILURE_WINDOW", "1000", Whole(1, 10**6), ("client",),
            "number of last samples for REWARDSTACK_MAX_FAILURE_RATE; 0.5 of 1000 stops at the 501st failure"),
    Setting("LLM_JUDGE_RAY_ACTOR", "", RayActor(), ("client",),
            "in place of LLM_JUDGE_SERVER_URL, a judge that is a Ray actor ([ray](ray.md)): `[NAMESPACE/]NAME`, such "
            "as `reward_inference_service`, which is in the namespace `rewardstack`"),
], place="environment")

LAUNCHERS = Section("Launchers", [
    Setting("REWARD_NUM_ENGINES", "1", Whole(1, 1024), ("ray-judge",),
            "vLLM engines of a judge that is a Ray actor ([ray](ray.md)), each with GPUs of its own"),
], place="environment")
# fmt: on

SECTIONS = (CACHE, RULES, JUDGE, REWARD_MODEL, EMBEDDING, TRAINER, LAUNCHERS)
TABLE = by_name(SECTIONS)
