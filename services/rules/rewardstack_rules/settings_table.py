"""The table of settings for the reward server and its workers, in addition to the client's settings.

`settings` reads them from the environment. `make settings` loads this file by its path.
"""

from __future__ import annotations

from rewardstack_settings.kinds import (
    NAME,
    PART,
    PORT,
    Files,
    Hosts,
    Keys,
    Maybe,
    Number,
    OneOf,
    Paths,
    RedisUrl,
    Text,
    Whole,
    Words,
)
from rewardstack_settings.setting import Section, Setting, by_name

BOTH = ("up", "compose")
SCORING = ("rules", "worker")
RULES_RUN = (*SCORING, "client")
"""Processes that run rules. A trainer (`client`) runs them itself if no reward server is set."""

# One row per setting.
# fmt: off
STACK = Section("The stack", [
    Setting("DRAIN_TIMEOUT", "90", Whole(1, 3600), (*BOTH, *SCORING),
            "seconds for a stopping service to finish its requests in flight, or for a worker its chunk of a job; "
            "samples that are cut off are `failed`, or scored by another worker"),
])

GATEWAY = Section("Gateway", [
    Setting("REWARD_PORT", "6000", PORT, (*BOTH, "rules"),
            "port of the gateway for rewards; of the reward server itself where it runs alone"),
    Setting("MAX_BODY_BYTES", str(64 * 2**20), Whole(1024, 2**40), ("gateway", "rules"),
            "bytes of the largest request body (64 MiB)"),
    Setting("ALLOWED_HOSTS", "", Hosts(), ("gateway", "rules"),
            "host names, separated by commas, that a server without keys accepts besides IP addresses, names without "
            "a dot and the machine's own; `.example.org` for every name below it"),
])

JOBS = Section("Jobs", [
    Setting("REWARD_JOB_CHUNK_SIZE", "200", Whole(1, 100_000), ("rules",),
            "samples of a job that a worker scores at a time"),
    Setting("REWARD_JOB_RETRIES", "3", Whole(0, 100), SCORING,
            "further attempts for samples of a job that the infrastructure failed; 0 for none"),
    Setting("REWARD_JOB_TTL", "604800", Whole(1, 10**9), ("rules",),
            "seconds that a job and its results stay after its end (a week)"),
    Setting("REWARD_KEY_OPEN_JOBS", "", Maybe(Whole(1, 1_000_000)), ("rules",),
            "unfinished jobs per API key; more are refused (429); empty for no limit. Without keys all clients count "
            "as one"),
    Setting("REWARD_KEY_QUEUE_BYTES", "", Maybe(Whole(1, 2**50)), ("rules",),
            "bytes of the queue that one API key's samples and results may take, compressed; samples that do not fit "
            "are refused (429); empty for no limit"),
])

RULES = Section("Reward server", [
    Setting("REWARD_WORKERS", "2", Whole(1, 1024), ("rules",), "server processes"),
    Setting("REWARD_THREADS", "32", Whole(1, 4096), ("rules",),
            "concurrent short requests of each server process; see REWARD_WAITING_REQUESTS for those over 0.1 s"),
    Setting("REWARD_WAITING_REQUESTS", "1024", Whole(2, 65_536), ("rules",),
            "concurrent requests of each server process that take longer than 0.1 s because they wait for judges, "
            "embeddings or isolated processes; one API key may use half of them; more are refused for now (503). They "
            "hold no thread, so others are still answered"),
    Setting("REWARD_BYTES_IN_FLIGHT", str(64 * 2**20), Whole(2**16, 2**40), ("rules",),
            "bytes of request bodies that each server process holds at the same time (memory use is about four "
            "times that); beyond it bodies of more than 64 KiB are refused for now (503)"),
    Setting("VERIFY_TIMEOUT", "5", Number(3600, "a number of seconds"), RULES_RUN,
            "seconds that one sample may take in an isolated process"),
    Setting("VERIFY_PROCESSES", "", Maybe(Whole(1, 1024)), RULES_RUN,
            "isolated processes that work at the same time; empty: one per CPU, in a trainer at most 8"),
    Setting("REWARD_FUNCTIONS", "", Files(several=True), RULES_RUN,
            "Python files with your own reward functions, separated by colons"),
    Setting("RELOAD", "off", OneOf("on", "off"), SCORING,
            "`on`: reward functions, the modules beside them, routes and prompt templates are loaded again within "
            "seconds of a change, for development"),
    Setting("REWARD_FUNCTIONS_ENV", "", Words(r"[A-Za-z_][A-Za-z0-9_]*", "HF_HOME,MY_DATA"), (*RULES_RUN, "up"),
            "environment variables that your own reward functions may read, separated by commas, beside `PATH`, "
            "`HOME`, `TMPDIR`, `LANG`, `LC_*`, `TZ`, `LD_LIBRARY_PATH` and `CUDA_VISIBLE_DEVICES`; never a secret of "
            "this table, or a URL with a password"),
    Setting("REWARD_FUNCTIONS_FILES", "", Paths(), RULES_RUN,
            "absolute paths of files and folders, separated by colons, that your functions may read besides code "
            "while they are confined"),
    Setting("REWARD_FUNCTIONS_ALLOW", "", Words(r"[a-z0-9_]+", "network,sched_setaffinity"), RULES_RUN,
            "what your functions may do besides computing while they are confined, separated by commas: `network`, "
            "`programs`, `write` (to REWARD_FUNCTIONS_FILES), or the names of single system calls"),
    Setting("CODE", "off", OneOf("on", "off"), (*RULES_RUN, "up"),
            "whether the reward function `code` runs the policy's programs, each test in a confined process"),
    Setting("CODE_PROCESSES", "", Maybe(Whole(1, 1024)), RULES_RUN,
            "samples whose programs run at the same time; empty: one per CPU"),
    Setting("CODE_TIMEOUT", "60", Number(3600, "a number of seconds"), RULES_RUN,
            "seconds of CPU that the tests of one sample may take together; those that are left then fail"),
    Setting("CODE_BOUNDARY", "", OneOf("", "container"), RULES_RUN,
            "`container`: run programs even if the kernel has no Landlock, because the server's container is the "
            "boundary"),
    Setting("CODE_PYTHON", "", Text(), RULES_RUN,
            "interpreter of the programs (Python 3.10 or later), with the packages that they may import; empty: the "
            "server's own"),
    Setting("DATASET_PATH", "", Files(), SCORING, "file of questions and golden answers, for requests without one"),
    Setting("GOLDEN_THRESHOLD", "0.9", PART, SCORING,
            "minimum similarity of a prompt and the nearest question of that file, from 0 to 1; below it the sample "
            "is `unscored`"),
    Setting("REWARD_SERVER_API_KEYS", "", Keys(), ("rules",),
            "API keys, separated by commas, each of at least 16 characters; every client must send one of them "
            "(`openssl rand -hex 32`); empty for an open server", secret=True),
    Setting("REWARD_KEY_RATE", "", Maybe(Whole(1, 1_000_000)), ("rules",),
            "requests per second of one of these keys to the reward server; more are refused (429); empty for no "
            "limit. Without keys all clients count as one"),
    Setting("STATUS_PAGE_EXPLAIN", "off", OneOf("on", "off"), ("rules",),
            "whether the status page (`GET /`) has a form that explains samples; it shows their texts, and requests "
            "and replies of judges"),
])

ALONE = Section("The reward server alone", [
    Setting("REWARD_HOST", "127.0.0.1", NAME, ("rules",),
            "address to listen on; `run_reward_server` defaults to `0.0.0.0`"),
    Setting("REWARD_SOCKET", "", Text(), ("rules",), "path of a Unix socket to listen on instead; `make up` sets it"),
    Setting("REWARD_QUEUE_URL", "", RedisUrl(), SCORING,
            "Redis that holds [jobs](jobs.md), such as `redis://localhost:6380/0`; empty for none; "
            "`make up` sets it", secret=True),
    Setting("PROMETHEUS_MULTIPROC_DIR", "", Text(), ("rules",),
            "directory of Prometheus's files for several processes; default: a temporary one, in memory"),
    Setting("WORKER_METRICS_PORT", "0", Whole(0, 65_535), ("worker",),
            "port on which a worker answers `/metrics`, on every address; 0 for none. With `MONITORING=on` "
            "containers use 9100"),
], place="environment")
# fmt: on

SECTIONS = (STACK, GATEWAY, JOBS, RULES, ALONE)
TABLE = by_name(SECTIONS)
