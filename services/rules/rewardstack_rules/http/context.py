"""The objects that all endpoints of a server share. `context` returns them for the current request."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Flask, current_app

from rewardstack_rules.functions.registry import Registry
from rewardstack_rules.golden import GoldenResponses
from rewardstack_rules.jobs.store import JobStore
from rewardstack_rules.scoring.evaluator import Evaluator
from rewardstack_rules.settings import Settings

EXTENSION = "rewardstack"


@dataclass(frozen=True, slots=True)
class Context:
    """The objects that the endpoints share.

    Args:
        settings: the server's settings, validated at startup.
        registry: the server's reward functions.
        golden: the server's golden responses.
        evaluator: scores samples.
        jobs: the server's jobs; None if it has no queue.
    """

    settings: Settings
    registry: Registry
    golden: GoldenResponses
    evaluator: Evaluator
    jobs: JobStore | None = None


def install(app: Flask, context: Context) -> None:
    """Attach the context to `app`."""
    app.extensions[EXTENSION] = context


def context() -> Context:
    """Return the context of the app that answers the current request."""
    found: Context = current_app.extensions[EXTENSION]
    return found
