"""JSON schemas of requests and replies, for the OpenAPI document.

A request with a missing field or a wrong structure gets an error. A wrong value in the right place, such as an invalid
option or a response that is not a string, only makes its sample unscored. The schemas list the valid options, but
allow any response, because clients send what the policy wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack.cause import Cause
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
OBJECT: Schema = {"type": "object"}
STATUS: Schema = {"enum": list(STATUSES)}
NUMBERS: Schema = {"type": "object", "additionalProperties": NUMBER}


def array(items: Schema) -> Schema:
    """Return the schema of a list of `items`."""
    return {"type": "array", "items": items}


def nullable(schema: Schema) -> Schema:
    """Return a schema that allows `schema` or null."""
    return {"anyOf": [{"type": "null"}, schema]}


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with these fields; other fields are allowed."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def closed_record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with these fields; other fields are not allowed."""
    return {**record(required, optional), "additionalProperties": False}


def name_schema(names: Sequence[str]) -> Schema:
    """Return the schema of a name. It lists `names`, but allows any string, because the name can be that of a route."""
    return {"anyOf": [{"enum": list(names)}, TEXT]}


def string_matching(pattern: re.Pattern[str]) -> Schema:
    """Return the schema of a string that matches `pattern`.

    The pattern ends with `\\Z`, which becomes `$`, because JSON Schema has no `\\Z`.
    """
    return {"type": "string", "pattern": pattern.pattern.removesuffix("\\Z") + "$"}


MESSAGES = array(record({"role": TEXT, "content": {"anyOf": [TEXT, array(OBJECT)]}}))
PROMPT: Schema = {"anyOf": [TEXT, MESSAGES]}
REFERENCES = [{"type": "null"}, TEXT, NUMBER, array(TEXT)]
REFERENCE: Schema = {"anyOf": [*REFERENCES, record({"target": {"anyOf": REFERENCES}}), OBJECT, array(OBJECT)]}
"""The reference of a sample: null, a single reference or a list of references. Each of these may also be the field
`target` of an object. For programs, the reference is the tests: an object or a list of objects."""
CRITERION: Schema = {"anyOf": [TEXT, OBJECT]}
RUBRIC: Schema = {"anyOf": [TEXT, array(CRITERION), OBJECT]}
JUDGE_OPTIONS: dict[str, Schema] = {
    "problem": PROMPT,
    "messages": MESSAGES,
    "view": {"enum": ["last_reply", "full_trace"]},
    "hide_reasoning": {"type": "boolean"},
    "images": {"anyOf": [array({"anyOf": [TEXT, OBJECT]}), {"enum": [False]}]},
    "rubrics": RUBRIC,
    "group_id": {"anyOf": [TEXT, {"type": "integer"}]},
    "group_size": {"type": "integer", "minimum": 1, "maximum": MAX_GROUP_SIZE},
    "rollout_index": {"anyOf": [TEXT, {"type": "integer"}]},
    "score_range": {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2},
}
"""Common options of judges. `docs/judge.md` lists all options."""
EXTRA: Schema = {
    "anyOf": [
        {"type": "null"},
        {
            "type": "object",
            "properties": {name: nullable(schema) for name, schema in {**JUDGE_OPTIONS, "transcript": TEXT}.items()},
            # Only the server's settings may set URLs, keys and paths; see `wire.is_server_field`.
            "propertyNames": {"not": {"pattern": f"(^|_)({'|'.join(SERVER_FIELDS)})$"}},
        },
    ]
}
"""The `extra_info` of a sample."""
CAUSE: Schema = {"enum": [cause.value for cause in Cause]}
"""Why a sample's status is not `ok`."""
ERROR = record({"error": TEXT, "field": nullable(TEXT)})
REWARDS = {"rewards": array(NUMBER), "statuses": array(STATUS)}

COUNT: Schema = {"type": "integer", "minimum": 0}
USAGE = closed_record({**dict.fromkeys(Usage._fields, COUNT), "uncounted": {"type": "integer"}})
"""Requests and tokens of a score. `uncounted` is the number of requests minus the number of replies that reported
tokens. If a request is counted in one score, and its reply in a later score, `uncounted` can be negative in the later
score."""
SCORE = closed_record(
    {
        "value": nullable(NUMBER),
        "status": STATUS,
        "reason": TEXT,
        "source": TEXT,
        "cached": {"type": "boolean"},
        "latency_ms": NUMBER,
        "details": OBJECT,
    },
    {"agreement": {"type": "number", "minimum": 0, "maximum": 1}, "field": TEXT, "usage": USAGE}
    | {"cause": CAUSE, "volatile": {"type": "boolean"}},
)
STEP = closed_record(
    {"step": TEXT, "latency_ms": NUMBER, "facts": OBJECT, "steps": array({"$ref": "#/components/schemas/Step"})}
)


COUNTS: Schema = {"type": "object", "additionalProperties": COUNT}
STATUS_COUNTS = closed_record(dict.fromkeys(STATUSES, COUNT))
LATENCY = closed_record(dict.fromkeys(("p50", "p95"), nullable(NUMBER)))
"""Median and 95th percentile of a latency, in seconds."""
SPENT = closed_record(dict.fromkeys(("requests", "prompt_tokens", "completion_tokens", "uncounted"), COUNT))
"""Requests and tokens that a route has spent."""
METRICS: Schema = {"type": "object", "additionalProperties": {"anyOf": [NUMBER, OBJECT]}}
"""Values of gauges and counters by name, as in `/metrics`; for a metric with a label, an object by label value."""
SAMPLES_PER_MINUTE: dict[str, Schema] = {name: array(COUNT) for name in STATUSES}
"""Fields with the numbers of samples in each of the last 60 minutes, by status."""
SAMPLES = {"hour": STATUS_COUNTS, "total": STATUS_COUNTS, "cached": closed_record({"hour": COUNT, "total": COUNT})}
"""Fields with the numbers of samples by status, and of cached samples, in the last hour and since the start."""
REWARD_STATISTICS = closed_record(
    {
        **dict.fromkeys(("count", "zeros", "groups", "groups_without_spread"), COUNT),
        **dict.fromkeys(("mean", "std"), nullable(NUMBER)),
        "maxima": nullable(COUNT),
        "histogram": array({"type": "array", "prefixItems": [nullable(NUMBER), COUNT], "items": False}),
        "parts": NUMBERS,
    }
)
"""The return value of `status.rewards.statistics`. `maxima` counts rewards equal to the route's upper bound.
`groups_without_spread` counts zero-variance groups: all rewards of the group are equal, so the GRPO advantages are
0."""
ROUTE = closed_record(
    {
        "route": TEXT,
        **SAMPLES,
        "latency_s": LATENCY,
        "minutes": closed_record(
            {"p95_s": array(nullable(NUMBER)), "reward": array(nullable(NUMBER)), **SAMPLES_PER_MINUTE}
        ),
        "rewards": closed_record({"hour": REWARD_STATISTICS, "total": REWARD_STATISTICS}),
    }
)
"""The samples of one route. `minutes` has, for each of the last 60 minutes, the 95th percentile of the latency in
seconds, the mean reward, and the numbers of samples by status."""
SERVICE = closed_record(
    {"service": TEXT, "address": TEXT, "up": nullable({"type": "boolean"}), "model": TEXT, "problem": TEXT}
)
REPLICA = closed_record(
    {"name": TEXT, "up": nullable({"type": "boolean"}), "asked": {"type": "boolean"}, "silent_s": NUMBER}
)
"""A reward server. `asked`: whether it created this report; `silent_s`: seconds since it last wrote its counts."""
REPORT = closed_record(
    {
        "version": TEXT,
        "at": NUMBER,
        "scope": closed_record(
            {"shared": {"type": "boolean"}, "note": TEXT, "since": COUNT, "replicas": array(REPLICA)}
        ),
        "services": array(SERVICE),
        "first_minute": COUNT,
        "samples": closed_record({**SAMPLES, "minutes": closed_record(SAMPLES_PER_MINUTE)}),
        "routes": array(ROUTE),
        "causes": array(
            closed_record(
                {"cause": CAUSE, "description": TEXT, "route": TEXT, "status": STATUS}
                | {"hour": COUNT, "last_minute": COUNT}
            )
        ),
        "endpoints": array(closed_record({"endpoint": TEXT, "hour": COUNTS, "total": COUNTS, "latency_s": LATENCY})),
        "spending": closed_record(
            {"routes": array(closed_record({"route": TEXT, "hour": SPENT, "total": SPENT})), "caps": COUNTS}
        ),
        "verifiers": METRICS,
        "cache": METRICS,
        "jobs": METRICS,
        "own_jobs": array({"$ref": "#/components/schemas/Job"}),
        "examples": nullable(array(closed_record({"route": TEXT, "highest": array(OBJECT), "lowest": array(OBJECT)}))),
    }
)
"""The reply of `/v1/status`. `at`, `since`, `first_minute` and `last_minute` are in seconds since 1970."""


LINES: Schema = TEXT
"""The samples of a job as JSONL, one per line."""
UPLOAD: Schema = record({"file": {"type": "string", "format": "binary"}})
"""A form with a JSONL file of samples."""
TIME: Schema = {"type": "string", "format": "date-time"}
JOB = closed_record(
    {
        "job_id": TEXT,
        "status": {"enum": list(JOB_STATUSES)},
        "items": COUNT,
        "done": COUNT,
        "progress": {"type": "number", "minimum": 0, "maximum": 1},
        "statuses": closed_record(dict.fromkeys(STATUSES, COUNT)),
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
    reward_type = {"reward_type": nullable(name_schema(names))}
    fields = {
        "solution_str": ANY,
        "response": ANY,
        "ground_truth": REFERENCE,
        "reward_model": nullable(record({}, {"ground_truth": REFERENCE})),
        "extra_info": EXTRA,
    }
    source = {"data_source": name_schema([f"rule_remote_{name}" for name in names])}
    return {
        "Samples": record({"items": array(record(source, fields))}),
        "Sample": record(source, {**fields, "rescore": {"type": "boolean", "default": False}}),
        "AlignAnything": record(
            {"prompts": array(PROMPT), "responses": array(ANY)},
            {"golden_responses": nullable(array(REFERENCE)), **reward_type},
        ),
        "OpenRLHF": record(
            {"query": array(ANY), "prompts": array(PROMPT)}, {"labels": nullable(array(REFERENCE)), **reward_type}
        ),
        "Slime": record({"prompt": PROMPT, "response": ANY}, {"label": REFERENCE, **reward_type}),
        "NeMoGymVerify": _nemo_gym_verify(reward_type),
        "NeMoGymSession": OBJECT,
        "NeMoGymVerified": record({"verify_responses": array(_NEMO_GYM_VERIFIED)}),
        "RollTask": _roll_task(reward_type),
        "RollResult": record({"reward_request_id": string_matching(roll.RESULT_ID)}),
    }


_NEMO_GYM_VERIFIED = record(
    {}, {"_ng_task_index": INTEGER, "_ng_rollout_index": INTEGER, "reward": NUMBER, "response": ANY}
)


def _nemo_gym_verify(reward_type: Schema) -> Schema:
    return record(
        {
            "responses_create_params": record({}, {"input": PROMPT}),
            "response": record({"output": array(record({}, {"type": TEXT, "role": TEXT, "content": ANY}))}),
        },
        {"question": ANY, "expected_answer": REFERENCE, **reward_type},
    )


def _roll_task(reward_type: Schema) -> Schema:
    return record(
        {"prompt": PROMPT, "response": ANY},
        {
            "reward_info": nullable(record({}, {"ground_truth": REFERENCE})),
            "timeout": nullable(NUMBER),
            "data_id": ANY,
            "rollout_id": ANY,
            "priority": ANY,
            **reward_type,
        },
    )


REPLIES: dict[str, Schema] = {
    "Error": ERROR,
    "Scores": closed_record({"scores": array(SCORE)}),
    "Explanation": closed_record({"data_source": TEXT, "score": nullable(SCORE), "error": TEXT, "steps": array(STEP)}),
    "Step": STEP,
    "Rewards": {
        "anyOf": [
            closed_record(REWARDS),
            closed_record(
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
        {"responses_create_params": OBJECT, "response": OBJECT, "reward": NUMBER},
        {"_ng_failure_class": TEXT, "mask_sample": {"type": "boolean"}, "failure_kind": TEXT, "failure_reason": TEXT},
    ),
    "NeMoGymMetrics": closed_record(
        {"group_level_metrics": array(OBJECT), **dict.fromkeys(("agent_metrics", "key_metrics"), NUMBERS)}
    ),
    "NeMoGymSeeded": closed_record({}, {"resources_session_id": TEXT}),
    "RollSubmitted": closed_record({"reward_request_id": TEXT, "errcode": {"const": 0}}),
    "RollReward": closed_record({"errcode": {"const": 0}, "reward_score": NUMBER}, {"errmsg": STATUS}),
    "JobAccepted": closed_record({"job_id": TEXT}),
    "Job": JOB,
    "StatusReport": REPORT,
    "RewardTypes": closed_record(
        {
            "reward_types": {"type": "object", "additionalProperties": OBJECT},
            "routes": {"type": "object", "additionalProperties": OBJECT},
            "settings": {"type": "object", "additionalProperties": TEXT},
            "version": TEXT,
        }
    ),
    "Health": closed_record({"status": {"const": "ok"}, "version": TEXT}),
    "Readiness": closed_record(
        {"ready": {"type": "boolean"}, "checks": {"type": "object", "additionalProperties": {"type": "boolean"}}}
    ),
    "Document": record({"openapi": TEXT, "info": OBJECT, "paths": OBJECT}),
}
"""Schemas of replies, by name."""
