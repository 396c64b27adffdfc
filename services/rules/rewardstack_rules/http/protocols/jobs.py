"""Endpoints for jobs: large evaluations that the server accepts immediately and workers score.

- `POST /jobs` accepts samples as in `/v1/score`, or JSONL with one sample per line, and returns 202 and `{"job_id"}`.
- `GET /jobs/ID` returns the job status.
- `GET /jobs/ID/results` returns one line per sample, in order: its score as in `/v1/score`, and its `index`.
- `DELETE /jobs/ID` cancels the job.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

from flask import Blueprint, Response, g, jsonify, request

from rewardstack_rules.http.context import context
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.protocols.body import refuse_misspelled
from rewardstack_rules.http.protocols.upload import read_samples
from rewardstack_rules.jobs.limits import JobTooLarge, LimitReached
from rewardstack_rules.jobs.state import JobState
from rewardstack_rules.jobs.store import Conflict, JobStore

blueprint = Blueprint("jobs", __name__)

IDEMPOTENCY_KEY = "Idempotency-Key"
KEY_PATTERN = re.compile(r"^[!-~]{1,255}\Z")
JOB_ID = re.compile(r"^[0-9a-f]{32}\Z")
NUMBER = re.compile(r"^[0-9]{1,15}\Z", re.ASCII)
RESULTS_TYPE = "application/x-ndjson"
LIMIT_RETRY_AFTER = 5
"""Value of the Retry-After header, in seconds, if an API key has reached a limit.

By then, one of the key's jobs may have ended.
"""


@blueprint.post("/jobs")
def submit() -> tuple[Response, int, dict[str, str]]:
    """Accept a job, and reply 202 once the job is on the queue's disk."""
    key = request.headers.get(IDEMPOTENCY_KEY, "")
    if IDEMPOTENCY_KEY in request.headers and not KEY_PATTERN.match(key):
        raise ApiError(400, f"{IDEMPOTENCY_KEY} must be 1 to 255 visible ASCII characters", IDEMPOTENCY_KEY)
    store = _store()
    try:
        job_id = store.submit(read_samples(), g.tenant, key)
    except Conflict as error:
        message = f"{IDEMPOTENCY_KEY}: the same key was used before with other samples; send another key"
        raise ApiError(409, message, IDEMPOTENCY_KEY) from error
    except JobTooLarge as error:
        raise ApiError(413, str(error), error.setting) from error
    except LimitReached as error:
        raise ApiError(429, str(error), error.setting, LIMIT_RETRY_AFTER) from error
    return jsonify(job_id=job_id), 202, {"Location": f"/jobs/{job_id}"}


@blueprint.get("/jobs/<job_id>")
def status(job_id: str) -> Response:
    """Return the status of a job."""
    return jsonify(describe(_state(job_id)))


@blueprint.delete("/jobs/<job_id>")
def cancel(job_id: str) -> Response:
    """Cancel a job unless it has ended, and return its status."""
    _state(job_id)
    _store().cancel(g.tenant, job_id)
    return jsonify(describe(_state(job_id)))


@blueprint.get("/jobs/<job_id>/results")
def results(job_id: str) -> Response:
    """Return the results of all samples, or of `count` samples from the position `start`.

    For an incomplete job, `partial=1` is required. The reply then ends before the first sample without a result.
    """
    refuse_misspelled(request.args, ("start", "count", "partial"), what="query parameter")
    first, count = _number("start", 0), _number("count", None)
    partial = request.args.get("partial", "0")
    if partial not in ("0", "1"):
        raise ApiError(400, "partial must be 0 or 1", "partial")
    state = _state(job_id)
    is_complete = state.done == state.items
    if not is_complete and partial == "0":
        remedy = "wait, or add partial=1" if state.ended is None else "add partial=1"
        message = f"the job is {state.status}, {state.done} of {state.items} samples are scored; {remedy}"
        raise ApiError(409, message, "partial")
    lines = _store().results(g.tenant, job_id, first or 0, count, partial=not is_complete)
    return Response(lines, mimetype=RESULTS_TYPE)


def _store() -> JobStore:
    store = context().jobs
    if store is None:
        raise ApiError(503, "this server accepts no jobs: it has no queue; set REWARD_QUEUE_URL", "REWARD_QUEUE_URL")
    return store


def _state(job_id: str) -> JobState:
    store = _store()
    state = store.state(g.tenant, job_id) if JOB_ID.match(job_id) else None
    if state is None:
        raise ApiError(404, "there is no such job; it has expired, or was submitted with another API key", "job_id")
    return state


def _number(name: str, default: int | None) -> int | None:
    text = request.args.get(name)
    if text is None:
        return default
    if not NUMBER.match(text):
        raise ApiError(400, f"{name} must be a whole number", name)
    return int(text)


def describe(state: JobState) -> dict[str, Any]:
    """Return the status of a job as JSON; `statuses` has the number of scored samples by the status of their score."""
    return {
        "job_id": state.job_id,
        "status": state.status,
        "items": state.items,
        "done": state.done,
        "progress": state.done / state.items if state.items else 1.0,
        "statuses": state.statuses,
        "cached": state.cached,
        "error": state.error or None,
        "submitted_at": _time(state.submitted),
        "started_at": _time(state.started),
        "ended_at": _time(state.ended),
        "expires_at": _time(state.expires),
    }


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
