"""What the endpoints of one server share."""

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
        settings: as checked at its start.
        registry: its reward functions.
        golden: its golden responses.
        evaluator: what scores.
        jobs: its jobs; None where it has no queue.
    """

    settings: Settings
    registry: Registry
    golden: GoldenResponses
    evaluator: Evaluator
    jobs: JobStore | None = None


def install(app: Flask, context: Context) -> None:
    """Gives `app` its context."""
    app.extensions[EXTENSION] = context


def context() -> Context:
    """The context of the app that answers the current request."""
    found: Context = current_app.extensions[EXTENSION]
    return found
