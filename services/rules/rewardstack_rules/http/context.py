"""Objects that the endpoints of one server share."""

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
    """A server's parts.

    Args:
        settings: validated at startup.
        registry: its reward functions.
        golden: its golden responses.
        evaluator: scores samples.
        jobs: its jobs; None if it has no queue.
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
