"""The reward server as a Flask application. gunicorn runs `rewardstack_rules.app:create_app()`."""

from __future__ import annotations

from flask import Flask

from rewardstack.errors import SettingsError, UnknownSourceError
from rewardstack_rules import auth, health, http_errors, metrics
from rewardstack_rules.catalogue import load_registry
from rewardstack_rules.context import Context
from rewardstack_rules.context import install as install_context
from rewardstack_rules.golden import load_golden
from rewardstack_rules.protocols import get_reward, reward_types, score
from rewardstack_rules.service import Service
from rewardstack_rules.settings import Settings


def create_app(settings: Settings | None = None) -> Flask:
    """The application. Isolated processes start with the first sample that needs them, unless they run already.

    Args:
        settings: by default those of the environment.

    Raises:
        SettingsError: a setting is wrong, or a file it names cannot be used.
        RouteError: two reward functions have one name.
    """
    settings = settings or Settings.from_env()
    registry = load_registry(settings.function_files)
    context = Context(settings, registry, load_golden(settings.dataset_path), Service(settings, registry))
    _check_reward_type(context)
    app = Flask(__name__)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    install_context(app, context)
    http_errors.install(app)
    metrics.install(app, settings.metrics_dir)
    auth.install(app, settings.api_keys)
    for protocol in (score, get_reward, reward_types, health):
        app.register_blueprint(protocol.blueprint)
    return app


def _check_reward_type(context: Context) -> None:
    try:
        context.service.source_of(context.settings.reward_type)
    except UnknownSourceError as error:
        raise SettingsError(f"REWARD_TYPE: {error}", "REWARD_TYPE") from error
