"""A large job in containers while every worker is killed in turn, and the queue once."""

from __future__ import annotations

from benchmarks.killed_job import Outcome, run_with_kills
from benchmarks.mix import make_samples
from tests.support.compose import ComposeStack


def run(stack: ComposeStack, items: int, workers: int) -> Outcome:
    """Runs it.

    Args:
        stack: is given the workers first.
        items: samples.
        workers: of which each is killed once.
    """
    stack.run("up", "--detach", "--wait", "--no-recreate", "--no-deps", "--scale", f"worker={workers}", "worker")
    (queue,) = stack.containers("queue")
    samples = list(make_samples(items, seed=2))
    return run_with_kills(stack.url("REWARD_PORT"), samples, stack.containers("worker"), queue, lambda: _metrics(stack))


def _metrics(stack: ComposeStack) -> str:
    """The reward server's, which nobody outside may read."""
    return stack.run("exec", "-T", "gateway", "curl", "-fsS", "http://rules:6000/metrics")
