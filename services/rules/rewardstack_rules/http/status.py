"""The status of the whole stack: `GET /v1/status` returns it as JSON, `GET /` as a web page.

The page is a single document that loads nothing external. No injected code can run in it, because browsers run only the
script whose hash is in the Content-Security-Policy header, and the script inserts data as text.
"""

from __future__ import annotations

import base64
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any

from flask import Blueprint, Flask, Response, current_app, g, jsonify, request
from prometheus_client.registry import Collector

from rewardstack.core.sample_log import extremes
from rewardstack.errors import ServiceError
from rewardstack_rules.http.context import Context, context
from rewardstack_rules.http.protocols.jobs import describe
from rewardstack_rules.http.request_log import QUIET
from rewardstack_rules.http.waiting import waiting_requests
from rewardstack_rules.status.recorder import Recorder
from rewardstack_rules.status.report import CachedValue, Reporter, Sources

blueprint = Blueprint("status", __name__)

PAGE = Path(__file__).with_name("page")
SCRIPTS = ("base.js", "plots.js", "sections.js")
EXTENSION = "rewardstack_status"
"""Key of the reporter in `app.extensions`."""
EXAMPLES = "rewardstack_examples"
"""Key in `app.extensions` of the cached samples with the highest and lowest rewards."""
EXAMPLES_SECONDS = 5.0
"""Seconds for which the samples with the highest and lowest rewards are cached."""
MAX_JOBS = 20
"""Maximum number of jobs that are listed individually."""


def install(app: Flask, here: Context, external: Collector) -> None:
    """Start to record counts for the figures of the last hour, and attach the reporter to `app`.

    Args:
        app: the application.
        here: the context of the application.
        external: collector of the metrics of other services (cache, queue, isolated processes).
    """
    settings, evaluator = here.settings, here.evaluator
    recorder = Recorder(settings.address, settings.metrics_dir, evaluator.client_settings.cache_url)
    recorder.start()
    urls = evaluator.client_settings.cache_url, settings.queue_url
    sources = Sources(recorder, external, evaluator.service_health, evaluator.run_limits, *urls, QUIET)
    app.extensions[EXTENSION] = Reporter(sources)
    app.extensions[EXAMPLES] = CachedValue(
        partial(extremes, Path(evaluator.client_settings.sample_log)), EXAMPLES_SECONDS
    )


@blueprint.get("/v1/status")
def status() -> Response:
    """Reply with the health of services, the last hour by route, and the caller's jobs."""
    reporter: Reporter = current_app.extensions[EXTENSION]
    with waiting_requests().count_waiting():  # the report may wait for the health of judges and embedding servers
        report = reporter.report()
    jobs = _own_jobs() if report["jobs"].get("rewardstack_queue_up") else []
    return _with_security_headers(
        jsonify({**report, "own_jobs": jobs, "examples": _own_examples()}), "default-src 'none'"
    )


def _own_examples() -> list[dict[str, Any]] | None:
    """Return the caller's samples with the highest and lowest rewards, as one object per route (`extremes`).

    Returns:
        The objects; an empty list if the query does not have `examples`; None if there is no sample log.
    """
    if not context().evaluator.client_settings.sample_log:
        return None
    examples: CachedValue[dict[str, Any]] = current_app.extensions[EXAMPLES]
    return examples.get().get(g.tenant, []) if request.args.get("examples") else []


def _own_jobs() -> list[dict[str, Any]]:
    store = context().jobs
    try:
        return [] if store is None else [describe(state) for state in store.recent_jobs(g.tenant, MAX_JOBS)]
    except ServiceError:
        return []  # the report shows that the queue is down


@blueprint.get("/")
def page() -> Response:
    """Reply with the status page."""
    here = context()
    text, policy = _page(
        explains=here.settings.page_explains, log_share=here.evaluator.client_settings.sample_log_share
    )
    return _with_security_headers(Response(text, content_type="text/html; charset=utf-8"), policy)


@cache
def _page(*, explains: bool, log_share: float) -> tuple[str, str]:
    """Return the page with its style and script, and the content security policy that allows only these.

    Args:
        explains: whether the page has a form to explain scores.
        log_share: share of the samples in the sample log, from 0 to 1.
    """
    style, form = _text("page.css"), _text("explain.html") if explains else ""
    script = "\n".join(map(_text, (*SCRIPTS, *(("explain.js",) if explains else ()), "refresh.js")))
    text = Template(_text("page.html")).substitute(
        style=style, script=script, explain=form, log_share=f"{100 * log_share:.3g}%"
    )
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, policy


def _text(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the CSP hash of inline content (https://www.w3.org/TR/CSP3/#grammardef-hash-source)."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _with_security_headers(response: Response, policy: str) -> Response:
    response.headers["Content-Security-Policy"] = policy
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"
    return response
