"""Run `rewardstack check --deep` as a user would, on a stack that a test has started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from rewardstack.settings import DEFAULTS
from rewardstack_cli.deep.checks import CHECKS
from services.up.model_servers import REWARD_MODEL_PATH

SECONDS = 1200.0
ALL = tuple(f"--require={name}" for name in CHECKS if name != "code" and not name.startswith("reward-model"))
"""Options that require all checks except those of code rewards and reward models, which not all stacks have."""
REWARD_MODEL = ("--require=reward-model", "--require=reward-model-directly")


def check(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the check and return its result; standard error is part of standard output.

    Args:
        arguments: additional arguments.
        environment: URLs and keys of the stack. The developer's settings are removed.
    """
    kept = {name: text for name, text in os.environ.items() if name not in DEFAULTS}
    return said([sys.executable, "-m", "rewardstack_cli", "check", "--deep", *arguments], **kept, **environment)


def said(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with exactly this environment; standard error is part of standard output."""
    return subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def addresses(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the client's URL variables for a stack on this machine.

    Args:
        environment: settings of the stack, including its ports.
    """
    ports = {
        "REWARD_SERVER_URL": "REWARD_PORT",
        "LLM_JUDGE_SERVER_URL": "JUDGE_PORT",
        "EMBEDDING_SERVER_URL": "EMBEDDING_PORT",
    }
    found = {url: f"http://127.0.0.1:{environment[port]}" for url, port in ports.items()}
    if environment.get("REWARD_MODEL_ID"):
        found["REWARD_MODEL_SERVER_URL"] = found["LLM_JUDGE_SERVER_URL"] + REWARD_MODEL_PATH
    return found
