"""JSON schemas of requests and replies, for the OpenAPI document.

A schema describes a well-formed request. Some values may be anything, because a value that cannot be scored, such as a
response that is not a string, makes only its sample unscored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack.core.groups import MAX_GROUP_SIZE
from rewardstack.core.wire import SERVER_FIELDS
from rewardstack.score import STATUSES, Usage
from rewardstack_rules.http.protocols import roll
from rewardstack_rules.jobs.state import JOB_STATUSES

Schema = dict[str, Any]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
FREE: Schema = {"type": "object"}
STATUS: Schema = {"enum": list(STATUSES)}
FIGURES: Schema = {"type": "object", "additionalProperties": NUMBER}


def array(items: Schema) -> Schema:
    """Return the schema of a list of `items`."""
    return {"type": "array", "items": items}


def nullable(schema: Schema) -> Schema:
    """Return a schema that allows `schema` or null."""
    return {"anyOf": [{"type": "null"}, schema]}


def record(needed: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with these fields; other fields are allowed."""
    return {"type": "object", "required": list(needed), "properties": {**needed, **(optional or {})}}


def exactly(needed: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with these fields; other fields are not allowed."""
    return {**record(needed, optional), "additionalProperties": False}


def one_of(names: Sequence[str]) -> Schema:
    """Return the schema of a name: one of `names`, or any other string, because a route may accept it."""
    return {"anyOf": [{"enum": list(names)}, TEXT]}


def matching(pattern: re.Pattern[str]) -> Schema:
    """Return the schema of a string that matches `pattern`; its final `\\Z`, unknown to JSON Schema, becomes `$`."""
    return {"type": "string", "pattern": pattern.pattern.removesuffix("\\Z") + "$"}


MESSAGES = array(record({"role": TEXT, "content": {"anyOf": [TEXT, array(FREE)]}}))
PROMPT: Schema = {"anyOf": [TEXT, MESSAGES]}
REFERENCES = [{"type": "null"}, TEXT, NUMBER, array(TEXT)]
REFERENCE: Schema = {"anyOf": [*REFERENCES, record({"target": {"anyOf": REFERENCES}}), FREE, array(FREE)]}
"""A reference, several, or (the last two alternatives) tests of programs."""
CRITERION: Schema = {"anyOf": [TEXT, FREE]}
RUBRIC: Schema = {"anyOf": [TEXT, array(CRITERION), FREE]}
JUDGE_OPTIONS: dict[str, Schema] = {
    "problem": PROMPT,
    "messages": MESSAGES,
    "view": {"enum": ["last_reply", "full_trace"]},
    "hide_reasoning": {"type": "boolean"},
    "images": {"anyOf": [array({"anyOf": [TEXT, FREE]}), {"enum": [False]}]},
    "rubrics": RUBRIC,
    "group_id": {"anyOf": [TEXT, {"type": "integer"}]},
    "group_size": {"type": "integer", "minimum": 1, "maximum": MAX_GROUP_SIZE},
    "rollout_index": {"anyOf": [TEXT, {"type": "integer"}]},
    "score_range": {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2},
}
"""Common options of judges; `docs/judge.md` lists all options."""
EXTRA: Schema = {
    "anyOf": [
        {"type": "null"},
        {
            "type": "object",
            "properties": {name: nullable(schema) for name, schema in JUDGE_OPTIONS.items()},
            "propertyNames": {"not": {"pattern": f"(^|_)({'|'.join(SERVER_FIELDS)})$"}},
        },
    ]
}
ERROR = record({"error": TEXT, "field": nullable(TEXT)})
REWARDS = {"rewards": array(NUMBER), "statuses": array(STATUS)}

COUNT: Schema = {"type": "integer", "minimum": 0}
USAGE = exactly({**dict.fromkeys(Usage._fields, COUNT), "uncounted": {"type": "integer"}})
"""Requests and tokens of a score. `uncounted` is negative if this score has a reply whose request an earlier score
counted."""
SCORE = exactly(
    {
        "value": nullable(NUMBER),
        "status": STATUS,
        "reason": TEXT,
        "source": TEXT,
        "cached": {"type": "boolean"},
        "latency_ms": NUMBER,
        "details": FREE,
    },
    {"agreement": {"type": "number", "minimum": 0, "maximum": 1}, "field": TEXT, "usage": USAGE}
    | {"volatile": {"type": "boolean"}},
)
STEP = exactly(
    {"step": TEXT, "latency_ms": NUMBER, "facts": FREE, "steps": array({"$ref": "#/components/schemas/Step"})}
)


COUNTS: Schema = {"type": "object", "additionalProperties": COUNT}
STATUS_COUNTS = exactly(dict.fromkeys(STATUSES, COUNT))
LATENCY = exactly(dict.fromkeys(("p50", "p95"), nullable(NUMBER)))
"""Median and 95th percentile of a latency, in seconds."""
SPENT = exactly(dict.fromkeys(("requests", "prompt_tokens", "completion_tokens", "uncounted"), COUNT))
GAUGES: Schema = {"type": "object", "additionalProperties": {"anyOf": [NUMBER, FREE]}}
"""Gauges and counters, by their names in `/metrics`."""
MINUTES: dict[str, Schema] = {name: array(COUNT) for name in STATUSES}
SAMPLES = {"hour": STATUS_COUNTS, "total": STATUS_COUNTS, "cached": exactly({"hour": COUNT, "total": COUNT})}
REWARD_FIGURES = exactly(
    {
        **dict.fromkeys(("count", "zeros", "groups", "groups_without_spread"), COUNT),
        **dict.fromkeys(("mean", "std"), nullable(NUMBER)),
        "maxima": nullable(COUNT),
        "histogram": array({"type": "array", "prefixItems": [nullable(NUMBER), COUNT], "items": False}),
        "parts": {"type": "object", "additionalProperties": NUMBER},
    }
)
"""The figures of `status.rewards.figures`."""
ROUTE = exactly(
    {
        "route": TEXT,
        **SAMPLES,
        "latency_s": LATENCY,
        "minutes": exactly({"p95_s": array(nullable(NUMBER)), "reward": array(nullable(NUMBER)), **MINUTES}),
        "rewards": exactly({"hour": REWARD_FIGURES, "total": REWARD_FIGURES}),
    }
)
SERVICE = exactly(
    {"service": TEXT, "address": TEXT, "up": nullable({"type": "boolean"}), "model": TEXT, "problem": TEXT}
)
REPLICA = exactly({"name": TEXT, "up": nullable({"type": "boolean"}), "asked": {"type": "boolean"}, "silent_s": NUMBER})
REPORT = exactly(
    {
        "version": TEXT,
        "at": NUMBER,
        "scope": exactly({"shared": {"type": "boolean"}, "note": TEXT, "since": COUNT, "replicas": array(REPLICA)}),
        "services": array(SERVICE),
        "first_minute": COUNT,
        "samples": exactly({**SAMPLES, "minutes": exactly(MINUTES)}),
        "routes": array(ROUTE),
        "causes": array(exactly({"cause": TEXT, "route": TEXT, "status": STATUS, "hour": COUNT, "last_minute": COUNT})),
        "endpoints": array(exactly({"endpoint": TEXT, "hour": COUNTS, "total": COUNTS, "latency_s": LATENCY})),
        "spending": exactly({"routes": array(exactly({"route": TEXT, "hour": SPENT, "total": SPENT})), "caps": COUNTS}),
        "verifiers": GAUGES,
        "cache": GAUGES,
        "jobs": GAUGES,
        "own_jobs": array({"$ref": "#/components/schemas/Job"}),
        "examples": nullable(array(exactly({"route": TEXT, "highest": array(FREE), "lowest": array(FREE)}))),
    }
)


LINES: Schema = TEXT
"""The samples of a job as JSONL, one per line."""
UPLOAD: Schema = record({"file": {"type": "string", "format": "binary"}})
"""A form with a JSONL file of samples."""
TIME: Schema = {"type": "string", "format": "date-time"}
JOB = exactly(
    {
        "job_id": TEXT,
        "status": {"enum": list(JOB_STATUSES)},
        "items": COUNT,
        "done": COUNT,
        "progress": {"type": "number", "minimum": 0, "maximum": 1},
        "statuses": exactly(dict.fromkeys(STATUSES, COUNT)),
        "cached": COUNT,
        "error": nullable(TEXT),
        "submitted_at": TIME,
        **{name: nullable(TIME) for name in ("started_at", "ended_at", "expires_at")},
    }
)


def bodies(names: Sequence[str]) -> dict[str, Schema]:
    """Return the schemas of request bodies by name.

    Args:
        names: names of the server's reward functions.
    """
    kind = {"reward_type": nullable(one_of(names))}
    fields = {"solution_str": ANY, "ground_truth": REFERENCE, "extra_info": EXTRA}
    source = {"data_source": one_of([f"rule_remote_{name}" for name in names])}
    return {
        "Samples": record({"items": array(record(source, fields))}),
        "Sample": record(source, {**fields, "rescore": {"type": "boolean", "default": False}}),
        "AlignAnything": record(
            {"prompts": array(PROMPT), "responses": array(ANY)},
            {"golden_responses": nullable(array(REFERENCE)), **kind},
        ),
        "OpenRLHF": record(
            {"query": array(ANY), "prompts": array(PROMPT)}, {"labels": nullable(array(REFERENCE)), **kind}
        ),
        "Slime": record({"prompt": PROMPT, "response": ANY}, {"label": REFERENCE, **kind}),
        "NeMoGymVerify": _nemo_gym_verify(kind),
        "NeMoGymSession": FREE,
        "NeMoGymVerified": record({"verify_responses": array(_NEMO_GYM_VERIFIED)}),
        "RollTask": _roll_task(kind),
        "RollResult": record({"reward_request_id": matching(roll.IDENT)}),
    }


_NEMO_GYM_VERIFIED = record(
    {}, {"_ng_task_index": INTEGER, "_ng_rollout_index": INTEGER, "reward": NUMBER, "response": ANY}
)


def _nemo_gym_verify(kind: Schema) -> Schema:
    return record(
        {
            "responses_create_params": record({}, {"input": PROMPT}),
            "response": record({"output": array(record({}, {"type": TEXT, "role": TEXT, "content": ANY}))}),
        },
        {"question": ANY, "expected_answer": REFERENCE, **kind},
    )


def _roll_task(kind: Schema) -> Schema:
    return record(
        {"prompt": PROMPT, "response": ANY},
        {
            "reward_info": nullable(record({}, {"ground_truth": REFERENCE})),
            "timeout": nullable(NUMBER),
            "data_id": ANY,
            "rollout_id": ANY,
            "priority": ANY,
            **kind,
        },
    )


REPLIES: dict[str, Schema] = {
    "Error": ERROR,
    "Scores": exactly({"scores": array(SCORE)}),
    "Explanation": exactly({"data_source": TEXT, "score": nullable(SCORE), "error": TEXT, "steps": array(STEP)}),
    "Step": STEP,
    "Rewards": {
        "anyOf": [
            exactly(REWARDS),
            exactly(
                {
                    **REWARDS,
                    "scores": array(NUMBER),
                    "extra_logs": {"type": "object", "additionalProperties": array(NUMBER)},
                }
            ),
            NUMBER,
        ]
    },
    "NeMoGymReward": record(
        {"responses_create_params": FREE, "response": FREE, "reward": NUMBER},
        {"_ng_failure_class": TEXT, "mask_sample": {"type": "boolean"}, "failure_kind": TEXT, "failure_reason": TEXT},
    ),
    "NeMoGymMetrics": exactly(
        {"group_level_metrics": array(FREE), **dict.fromkeys(("agent_metrics", "key_metrics"), FIGURES)}
    ),
    "NeMoGymSeeded": exactly({}, {"resources_session_id": TEXT}),
    "RollSubmitted": exactly({"reward_request_id": TEXT, "errcode": {"const": 0}}),
    "RollReward": exactly({"errcode": {"const": 0}, "reward_score": NUMBER}, {"errmsg": STATUS}),
    "JobTaken": exactly({"job_id": TEXT}),
    "Job": JOB,
    "Status": REPORT,
    "RewardTypes": exactly(
        {
            "reward_types": {"type": "object", "additionalProperties": FREE},
            "routes": {"type": "object", "additionalProperties": FREE},
            "settings": {"type": "object", "additionalProperties": TEXT},
            "version": TEXT,
        }
    ),
    "Health": exactly({"status": {"const": "ok"}, "version": TEXT}),
    "Readiness": exactly(
        {"ready": {"type": "boolean"}, "checks": {"type": "object", "additionalProperties": {"type": "boolean"}}}
    ),
    "Document": record({"openapi": TEXT, "info": FREE, "paths": FREE}),
}
"""Schemas of replies, by name."""
