"""The reward server as a Flask application. gunicorn runs `rewardstack_rules.http.app:create_app()`."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Flask
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from rewardstack.errors import SettingsError, UnknownSourceError
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.golden import load_golden
from rewardstack_rules.http import (
    admission,
    auth,
    browsers,
    connection,
    errors,
    health,
    key_rate,
    metrics,
    openapi,
    request_log,
    status,
    waiting,
    working,
)
from rewardstack_rules.http.context import Context
from rewardstack_rules.http.context import install as install_context
from rewardstack_rules.http.protocols import get_reward, jobs, nemo_gym, reward_types, roll, score
from rewardstack_rules.jobs.metrics import JobsCollector
from rewardstack_rules.jobs.store import JobStore
from rewardstack_rules.metrics import counters
from rewardstack_rules.metrics.cache import CacheCollector
from rewardstack_rules.metrics.isolation import isolation_collectors
from rewardstack_rules.scoring.evaluator import Evaluator
from rewardstack_rules.settings import QUEUED_REQUESTS, Settings


def create_app(settings: Settings | None = None) -> Flask:
    """Create the application. If no isolated processes run yet, the first sample that needs them starts them.

    Args:
        settings: settings of the server; by default read from the environment.

    Raises:
        SettingsError: a setting is invalid, or a file that it names cannot be used.
        RouteError: a reward function cannot be used, for example because two have the same name.
    """
    settings = settings or Settings.from_env()
    context = load_context(settings)
    app = Flask(__name__, static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    install_context(app, context)
    connection.install(app)
    request_log.install(app)
    errors.install(app)
    external = CollectorRegistry()
    for collector in _collectors(context):
        external.register(collector)
    metrics.install(app, settings.metrics_dir, external)
    status.install(app, context, external)
    browsers.install(app, settings.allowed_hosts, bool(settings.api_keys))
    auth.install(app, settings.api_keys)
    key_rate.install(app, settings.key_rate, context.evaluator.client_settings.cache_url)
    working.install(app, settings.threads, QUEUED_REQUESTS)
    admission.install(app, settings.bytes_in_flight, settings.max_body_bytes)
    waiting.install(app, settings.waiting_requests, settings.bytes_in_flight)
    for protocol in (score, get_reward, nemo_gym, roll, jobs, reward_types, health, openapi, status):
        app.register_blueprint(protocol.blueprint)
    return app


def load_context(settings: Settings) -> Context:
    """Load all files that the settings name. Raises the same errors as `create_app`."""
    registry = load_registry(settings.function_files, settings.code)
    golden = load_golden(settings.dataset_path, settings.golden_threshold)
    evaluator = Evaluator(settings, registry, counters)
    store = JobStore(settings, evaluator.group_of) if settings.queue_url else None
    context = Context(settings, registry, golden, evaluator, store)
    _check_reward_type(context)
    return context


def _collectors(context: Context) -> Iterator[Collector]:
    yield from isolation_collectors(context.evaluator)
    if context.evaluator.client_settings.cache_url:
        yield CacheCollector(context.evaluator.client_settings.cache_url)
    if context.settings.queue_url:
        yield JobsCollector(context.settings.queue_url)


def _check_reward_type(context: Context) -> None:
    try:
        context.evaluator.get_source(context.settings.reward_type)
    except UnknownSourceError as error:
        raise SettingsError(f"REWARD_TYPE: {error}", "REWARD_TYPE") from error
