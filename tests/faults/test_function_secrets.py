"""No secret of the server reaches the processes that read what others wrote: each gets an allow list of variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewardstack.errors import SettingsError
from rewardstack_rules.settings import SECRETS, RuleSettings
from tests.rules.conftest import RewardServer, running
from tests.support.isolated import children_of, supervisors_of, zygotes_of
from tests.support.table import Table

SECRET = "s3cret"
HOLDERS = {
    "LLM_JUDGE_HEADERS": f"X-Key: {SECRET}",
    "REWARD_CACHE_SECRET": SECRET,
    "REDISCLI_AUTH": SECRET,
    "MY_REDIS": f"redis://host/0?password={SECRET}",
    "HTTPS_PROXY": f"user:{SECRET}@proxy:3128",
    "PGPASSFILE": f"/home/{SECRET}",
}
FUNCTIONS = """\
import os
from rewardstack_rules import reward_function

@reward_function(confined={confined})
def {name}(response, reference=None):
    with open("/proc/self/environ") as file:
        return {{"score": 1.0, "reason": repr(dict(os.environ)) + file.read()}}
"""


@pytest.fixture(scope="module")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with secrets in its environment, and functions that return their own environment."""
    folder = tmp_path_factory.mktemp("secrets")
    for name, confined in (("confined", True), ("unconfined", False)):
        (folder / f"{name}.py").write_text(FUNCTIONS.format(name=name, confined=confined))
    files = f"{folder / 'confined.py'}:{folder / 'unconfined.py'}"
    named = {"REWARD_FUNCTIONS_ENV": "MY_DATA", "MY_DATA": "the operator's"}
    variables = {"REWARD_FUNCTIONS": files, "VERIFY_PROCESSES": 1, **HOLDERS, **named}
    with running(folder, "--workers", "1", fresh=True, **variables) as one:
        yield one


@pytest.mark.parametrize("name", ["confined", "unconfined"])
def test_functions(server: RewardServer, name: str) -> None:
    """A function sees the variable that the operator named, and no secret."""
    [score] = server.score({"data_source": f"rule_remote_{name}", "solution_str": "a"})
    assert (score["status"], "MY_DATA" in score["reason"]) == ("ok", True), score
    assert SECRET not in score["reason"]


def test_processes(server: RewardServer) -> None:
    """No isolated process, nor any above it, has a secret in its environment."""
    port = server.url.rpartition(":")[2]
    pids = [*supervisors_of(port), *zygotes_of(port), *children_of(port)]
    assert len(pids) >= 6
    assert [pid for pid in pids if SECRET in Path(f"/proc/{pid}/environ").read_text()] == []


def test_named_secrets(table: Table) -> None:
    """The server refuses to hand a function a secret of the table, its file, or an address with a password."""
    variables = dict.fromkeys(SECRETS, SECRET) | {f"{name}_FILE": "/key" for name in SECRETS}
    for text in (
        "http://a:b@host",
        "redis://:b@host/0",
        "https://token@host/",
        "user:pw@proxy:1",
        "redis://h?password=b",
    ):
        variables[f"MINE_{len(variables)}"] = text
    for name, text in variables.items():
        with table.case(name), pytest.raises(SettingsError, match=f"REWARD_FUNCTIONS_ENV: {name} ") as caught:
            RuleSettings.from_env({"REWARD_FUNCTIONS_ENV": f"HOME, {name}", name: text})
        assert text not in str(caught.value)


def test_named_variables(table: Table) -> None:
    """What holds no password may be named."""
    for text in ("", "/models", "http://host:80/a?b=c", "me@example.org", "/a:/b@c", "a=b,c:d"):
        with table.case(text):
            settings = RuleSettings.from_env({"REWARD_FUNCTIONS_ENV": "MINE", "MINE": text})
            assert settings.function_variables == ("MINE",)
