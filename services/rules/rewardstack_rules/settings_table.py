"""The table of settings for the reward server and its workers, in addition to the client's settings.

The module `settings` reads the values from environment variables. The command `make settings` loads this file by its
path.
The fourth argument of a setting names the programs and services that read it
(`services.stack.settings_table.READERS`).
"""

from __future__ import annotations

from rewardstack_settings.kinds import (
    NAME,
    PORT,
    SHARE,
    Files,
    Hosts,
    Integer,
    Keys,
    Maybe,
    Number,
    OneOf,
    Paths,
    RedisUrl,
    Text,
    Urls,
    Words,
)
from rewardstack_settings.setting import Section, Setting, index_by_name

BOTH = ("up", "compose")
SCORING = ("rules", "worker")
RULES_RUN = (*SCORING, "client")
"""Processes that run rules. A trainer (`client`) runs them itself if no reward server is set."""

# fmt: off
STACK = Section("The stack", [
    Setting("DRAIN_TIMEOUT", "90", Integer(1, 3600), (*BOTH, *SCORING),
            "seconds that a stopping service has to finish its requests, and a stopping worker its chunks; after that, "
            "samples of requests are `failed`, and other workers score the chunks"),
])

GATEWAY = Section("Gateway", [
    Setting("REWARD_PORT", "6000", PORT, (*BOTH, "rules"),
            "port for rewards: of the gateway, or without a gateway, of the reward server"),
    Setting("MAX_BODY_BYTES", str(64 * 2**20), Integer(1024, 2**40), ("gateway", "rules"),
            "maximum bytes of a request body (64 MiB)"),
    Setting("ALLOWED_HOSTS", "", Hosts(), ("gateway", "rules"),
            "host names, comma-separated, by which clients may address a server without keys, besides IP addresses, "
            "names without a dot and the machine's own names; `.example.org` includes all subdomains"),
])

JOBS = Section("Jobs", [
    Setting("REWARD_JOB_CHUNK_SIZE", "200", Integer(1, 100_000), ("rules",), "samples per chunk of a job"),
    Setting("REWARD_JOB_RETRIES", "3", Integer(0, 100), SCORING,
            "retries of a job's samples that failed because of the infrastructure"),
    Setting("REWARD_JOB_TTL", "604800", Integer(1, 10**9), ("rules",),
            "seconds that a job and its results are kept after its end (a week)"),
    Setting("REWARD_KEY_OPEN_JOBS", "", Maybe(Integer(1, 1_000_000)), ("rules",),
            "maximum unfinished jobs per API key; further jobs get status 429; empty: no limit. Without keys all "
            "clients share one limit"),
    Setting("REWARD_KEY_QUEUE_BYTES", "", Maybe(Integer(1, 2**50)), ("rules",),
            "maximum compressed bytes of samples and results in the queue per API key; further jobs get status 429; "
            "empty: no limit"),
])

RULES = Section("Reward server", [
    Setting("REWARD_WORKERS", "2", Integer(1, 1024), ("rules",), "server processes"),
    Setting("REWARD_THREADS", "32", Integer(1, 4096), ("rules",),
            "concurrent requests of each server process that take less than 0.1 s"),
    Setting("REWARD_WAITING_REQUESTS", "1024", Integer(2, 65_536), ("rules",),
            "concurrent requests of each server process that take longer, because they wait for models or isolated "
            "processes; at most half per API key; more get 503"),
    Setting("REWARD_BYTES_IN_FLIGHT", str(64 * 2**20), Integer(2**16, 2**40), ("rules",),
            "maximum bytes of all request bodies in a server process, which then needs four times as much memory; "
            "beyond the limit, bodies of more than 64 KiB get 503"),
    Setting("VERIFY_TIMEOUT", "5", Number(3600, "a number of seconds"), RULES_RUN,
            "seconds per sample in an isolated process"),
    Setting("VERIFY_PROCESSES", "", Maybe(Integer(1, 1024)), RULES_RUN,
            "concurrent isolated processes; empty: one per CPU, in a trainer at most 8"),
    Setting("REWARD_FUNCTIONS", "", Files(is_list=True), RULES_RUN,
            "Python files with [your reward functions](rules.md#your-own-reward-function-in-five-minutes), "
            "colon-separated"),
    Setting("RELOAD", "off", OneOf("on", "off"), SCORING,
            "`on`: load changed reward functions, modules beside them, routes and prompt templates within seconds; "
            "for development"),
    Setting("REWARD_FUNCTIONS_ENV", "", Words(r"[A-Za-z_][A-Za-z0-9_]*", "HF_HOME,MY_DATA"), (*RULES_RUN, "up"),
            "variables that your functions may read, comma-separated, besides `PATH`, `HOME`, `TMPDIR`, `LANG`, "
            "`LC_*`, `TZ`, `LD_LIBRARY_PATH` and `CUDA_VISIBLE_DEVICES`; secrets of this table and URLs with a "
            "password are never passed"),
    Setting("REWARD_FUNCTIONS_FILES", "", Paths(), RULES_RUN,
            "absolute paths, colon-separated, that your confined functions may read besides code"),
    Setting("REWARD_FUNCTIONS_ALLOW", "", Words(r"[a-z0-9_]+", "network,sched_setaffinity"), RULES_RUN,
            "what your confined functions may do, comma-separated: `network`, `programs`, `write` (to "
            "REWARD_FUNCTIONS_FILES), or names of system calls"),
    Setting("CODE", "off", OneOf("on", "off"), (*RULES_RUN, "up"),
            "`on`: the function [`code`](code.md) runs the policy's programs, confined"),
    Setting("CODE_PROCESSES", "", Maybe(Integer(1, 1024)), RULES_RUN,
            "samples whose programs run concurrently; empty: one per CPU"),
    Setting("CODE_TIMEOUT", "60", Number(3600, "a number of seconds"), RULES_RUN,
            "seconds of CPU for all tests of a sample; after that, the remaining tests fail"),
    Setting("CODE_BOUNDARY", "", OneOf("", "container"), RULES_RUN,
            "`container`: run programs without Landlock, because the container is the boundary"),
    Setting("CODE_PYTHON", "", Text(), RULES_RUN,
            "interpreter of the programs (3.10 or later), with the packages that they may import; empty: that of the "
            "server"),
    Setting("CODE_CXX", "", Text(), RULES_RUN,
            "compiler of programs in C++ and C, with static libraries; empty: `g++`, `c++` or `clang++` on PATH"),
    Setting("SANDBOX_FUSION_URL", "", Urls(), (*RULES_RUN, "up"),
            "equivalent [SandboxFusion servers](code.md#sandboxfusion), comma-separated, that run the programs instead "
            "of rewardstack; not together with CODE_SANDBOX_URL"),
    Setting("DATASET_PATH", "", Files(), SCORING,
            "file of questions and golden responses, for requests without a reference"),
    Setting("GOLDEN_THRESHOLD", "0.9", SHARE, SCORING,
            "minimum similarity, from 0 to 1, of a prompt to its nearest question; below it the sample is `unscored`"),
    Setting("REWARD_SERVER_API_KEYS", "", Keys(), ("rules",),
            "API keys, comma-separated, of at least 16 characters (`openssl rand -hex 32`); clients must send one; "
            "empty: no keys", secret=True),
    Setting("REWARD_KEY_RATE", "", Maybe(Integer(1, 1_000_000)), ("rules",),
            "maximum requests per second and API key; further requests get status 429; empty: no limit. Without keys "
            "all clients share one limit"),
    Setting("STATUS_PAGE_EXPLAIN", "off", OneOf("on", "off"), ("rules",),
            "`on`: the status page has a form that explains samples; it shows texts, requests and replies of judges"),
])

ALONE = Section("The reward server alone", [
    Setting("REWARD_HOST", "127.0.0.1", NAME, ("rules",),
            "address to listen on; `run_reward_server` defaults to `0.0.0.0`"),
    Setting("REWARD_SOCKET", "", Text(), ("rules",),
            "Unix socket to listen on instead of REWARD_HOST and REWARD_PORT; `make up` sets it"),
    Setting("REWARD_QUEUE_URL", "", RedisUrl(), SCORING,
            "Redis of the [job](jobs.md) queue, such as `redis://localhost:6380/0`; empty: no jobs; `make up` sets it",
            secret=True),
    Setting("PROMETHEUS_MULTIPROC_DIR", "", Text(), ("rules",),
            "directory of Prometheus's multiprocess files; empty: a temporary one, in memory"),
    Setting("WORKER_METRICS_PORT", "0", Integer(0, 65_535), ("worker",),
            "port of a worker's `/metrics`, on every address; 0: none. Containers with `MONITORING=on` use 9100"),
], place="environment")
# fmt: on

SECTIONS = (STACK, GATEWAY, JOBS, RULES, ALONE)
TABLE = index_by_name(SECTIONS)
