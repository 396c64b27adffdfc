"""`GET /openapi.json`: this server's endpoints and reward functions as an OpenAPI 3.1 document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, Response, jsonify

from rewardstack.core.deadline import HEADER as DEADLINE
from rewardstack.core.wire import BUDGET_HEADER
from rewardstack_rules import __version__
from rewardstack_rules.http import key_rate, request_log
from rewardstack_rules.http.auth import OPEN_PATHS
from rewardstack_rules.http.context import context
from rewardstack_rules.http.protocols.jobs import IDEMPOTENCY_KEY, JOB_ID, KEY_PATTERN, NUMBER, RESULTS_TYPE
from rewardstack_rules.http.protocols.schemas import LINES, REPLIES, TEXT, UPLOAD, bodies, name_schema, string_matching

blueprint = Blueprint("openapi", __name__)

ERROR_TEXTS = {
    400: "The request is malformed; `field` names the invalid field",
    401: "The API key is missing or unknown",
    404: "The name or id is unknown; `error` lists the known names, or has the cause",
    408: "The request arrives too slowly; try again",
    409: "The request conflicts with an earlier one or with the job's status; `error` has the remedy",
    413: "The body is longer than MAX_BODY_BYTES or has too many values, or the job exceeds a limit of the API key",
    415: "The Content-Type of the body is missing or not supported",
    429: "A limit of the API key, or of all clients without keys, is exceeded; wait for Retry-After seconds",
    503: "Samples are `failed`, there is no queue, or the server is overloaded; try again. But if the reply has "
    f"{BUDGET_HEADER}, the run has used up its budget, and a retry cannot help",
}
SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "password": {"type": "http", "scheme": "basic"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one endpoint.

    Args:
        path: the endpoint's path.
        method: the HTTP method, in lower case.
        summary: what the operation does.
        reply: schema name of the reply; empty if it is not JSON.
        bodies: schema names of the bodies that the operation accepts; empty if it accepts none.
        scores: whether the operation scores samples. If it does, it accepts a deadline in a header and, except for
            `/v1/score` and `/v1/explain`, a reward type in the query.
        codes: status codes of errors, in addition to those that the other arguments imply.
        success: status code of a successful reply.
        media: content type of the reply, if it is neither JSON nor plain text.
        parameters: additional parameters, in OpenAPI's format.
    """

    path: str
    method: str
    summary: str
    reply: str
    bodies: tuple[str, ...] = ()
    scores: bool = False
    codes: tuple[int, ...] = ()
    success: int = 200
    media: str = ""
    parameters: tuple[dict[str, Any], ...] = ()

    @property
    def accepts_body(self) -> bool:
        """Whether the operation accepts a body."""
        return bool(self.bodies)


def parameter(location: str, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter in OpenAPI's format. Only parameters in the path are required.

    Args:
        location: `path`, `query` or `header`.
        name: name of the parameter.
        schema: schema of the value.
    """
    return {"in": location, "name": name, "required": location == "path", "schema": schema}


JOB = (parameter("path", "job_id", string_matching(JOB_ID)),)
PAGE = tuple(parameter("query", name, string_matching(NUMBER)) for name in ("start", "count"))
PARTIAL = parameter("query", "partial", {"enum": ["0", "1"]})
KEY = (parameter("header", IDEMPOTENCY_KEY, string_matching(KEY_PATTERN)),)

TRAINERS = ("AlignAnything", "OpenRLHF", "Slime")
OPERATIONS = (
    Operation("/v1/score", "post", "Scores samples of any route", "Scores", ("Samples",), True, (404,)),
    Operation("/v1/explain", "post", "Explains the score of a sample", "Explanation", ("Sample",), True, (404,)),
    Operation("/get_reward", "post", "Rewards for trainers", "Rewards", TRAINERS, True, (404, 503)),
    Operation("/verify", "post", "NeMo Gym: verifies a response", "NeMoGymReward", ("NeMoGymVerify",), True, (404,)),
    Operation("/seed_session", "post", "NeMo Gym: starts a session", "NeMoGymSeeded", ("NeMoGymSession",)),
    Operation(
        "/aggregate_metrics", "post", "NeMo Gym: metrics of verified responses", "NeMoGymMetrics", ("NeMoGymVerified",)
    ),
    Operation("/roll/submit", "post", "ROLL: scores a sample", "RollSubmitted", ("RollTask",), True, (404, 503)),
    Operation("/roll/result", "get", "ROLL: returns the reward", "RollReward", ("RollResult",), codes=(404,)),
    Operation("/roll/result", "post", "ROLL: returns the reward", "RollReward", ("RollResult",), codes=(404,)),
    Operation(
        "/jobs",
        "post",
        "Submits a job: samples to score later",
        "JobAccepted",
        ("Samples",),
        codes=(404, 409, 503),
        success=202,
        parameters=KEY,
    ),
    Operation("/jobs/{job_id}", "get", "Job status", "Job", codes=(404, 503), parameters=JOB),
    Operation("/jobs/{job_id}", "delete", "Cancels a job", "Job", codes=(404, 503), parameters=JOB),
    Operation(
        "/jobs/{job_id}/results",
        "get",
        "Results of a job",
        "",
        codes=(400, 404, 409, 503),
        media=RESULTS_TYPE,
        parameters=(*JOB, *PAGE, PARTIAL),
    ),
    Operation("/v1/reward_types", "get", "The reward functions of this server", "RewardTypes"),
    Operation("/v1/status", "get", "Services, and the last hour by route", "StatusReport", codes=(503,)),
    Operation("/", "get", "The status as a web page", "", media="text/html"),
    Operation("/health", "get", "Liveness", "Health"),
    Operation("/ready", "get", "Readiness", "Readiness"),
    Operation("/metrics", "get", "Counts in Prometheus' text format", ""),
    Operation("/openapi.json", "get", "This document", "Document"),
)


@blueprint.get("/openapi.json")
def openapi() -> Response:
    """Return the OpenAPI document of this server."""
    return jsonify(document([rule.name for rule in context().registry]))


def document(names: list[str]) -> dict[str, Any]:
    """Build the OpenAPI document.

    Args:
        names: names of the server's reward functions.
    """
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, names)
    return {
        "openapi": "3.1.0",
        "info": {"title": "rewardstack reward server", "version": __version__},
        "paths": paths,
        "security": [{}, *({name: []} for name in SECURITY)],
        "components": {"schemas": {**bodies(names), **REPLIES}, "securitySchemes": SECURITY},
    }


def _operation(operation: Operation, names: list[str]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "operationId": operation.method + re.sub(r"\W+", "_", operation.path).rstrip("_"),
        "summary": operation.summary,
        "parameters": _parameters(operation, names),
        "responses": {
            str(operation.success): _response("The answer", operation.reply, operation.media),
            **_refusals(operation),
        },
    }
    if operation.accepts_body:
        content = {"application/json": {"schema": _any_of(operation.bodies)}}
        if operation.path == "/jobs":
            content |= {RESULTS_TYPE: {"schema": LINES}, "multipart/form-data": {"schema": UPLOAD}}
        record["requestBody"] = {"required": True, "content": content}
    if operation.path in OPEN_PATHS:
        record["security"] = []
    return record


def _parameters(operation: Operation, names: list[str]) -> list[dict[str, Any]]:
    found = [
        *operation.parameters,
        parameter("header", request_log.HEADER, string_matching(request_log.ID_PATTERN)),
    ]
    if operation.scores:
        found.append(parameter("header", DEADLINE, {"type": "number"}))
    if operation.scores and operation.path not in ("/v1/score", "/v1/explain"):
        found.append(parameter("query", "reward_type", name_schema(names)))
    return found


def _refusals(operation: Operation) -> dict[str, Any]:
    codes = {
        *operation.codes,
        *((400, 408, 413, 415, 503) if operation.accepts_body else ()),
        *(() if operation.path in OPEN_PATHS else (401,)),
    }
    if operation.path not in key_rate.UNLIMITED_PATHS:
        codes.add(429)
    found = {str(code): _response(ERROR_TEXTS[code], "Error") for code in sorted(codes)}
    if operation.path == "/ready":
        found["503"] = _response("Samples cannot be scored", operation.reply)
    return found


def _response(description: str, name: str, media: str = "") -> dict[str, Any]:
    content = {"application/json": {"schema": _any_of([name])}} if name else {media or "text/plain": {"schema": TEXT}}
    header = {request_log.HEADER: {"schema": TEXT}}
    return {"description": description, "headers": header, "content": content}


def _any_of(names: Iterable[str]) -> dict[str, Any]:
    found = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    return found[0] if len(found) == 1 else {"anyOf": found}
