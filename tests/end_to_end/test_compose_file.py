"""`compose.yaml` by itself, as `docker compose up` starts it, without the services that load a model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.end_to_end.conftest import check
from tests.support.compose import ComposeStack, running

pytestmark = [
    pytest.mark.usefixtures("needs_engine"),
    pytest.mark.nightly,
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def stack() -> Iterator[ComposeStack]:
    """A running stack of rules, worker, cache and queue behind the gateway."""
    with running(profiles=()) as one:
        yield one


def test_every_check_holds(stack: ComposeStack) -> None:
    """What is checked of gateway, rules, cache and jobs holds."""
    done = check("--require=paths", "--require=jobs", REWARD_SERVER_URL=stack.url("REWARD_PORT"))
    assert done.returncode == 0, done.stdout


def test_every_check_holds_from_within(stack: ComposeStack) -> None:
    """The image has the same check, which needs to be told nothing there, and reaches the cache as well."""
    required = [f"--require={name}" for name in ("paths", "jobs", "cache-directly")]
    stack.run("exec", "-T", "rules", "rewardstack", "check", "--deep", *required)


def test_a_crash_of_everything(stack: ComposeStack) -> None:
    """When every container was killed and started again, all of it holds once more."""
    for service in stack.configuration()["services"]:
        for container in stack.containers(service):
            container.kill()
    stack.start()
    done = check(REWARD_SERVER_URL=stack.url("REWARD_PORT"))
    assert done.returncode == 0, done.stdout
