"""The script, run as one would by hand, against a stack that a test has started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from rewardstack.settings import DEFAULTS
from services.stack.rundir import ROOT

SECONDS = 900.0


def script(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the script says; stderr comes with stdout.

    Args:
        arguments: of it.
        environment: keys and the cache's address; none of the developer's own count.
    """
    kept = {name: text for name, text in os.environ.items() if name not in DEFAULTS}
    return subprocess.run(
        [sys.executable, "-m", "tests.end_to_end", *arguments],
        cwd=ROOT,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def addresses(environment: Mapping[str, str]) -> list[str]:
    """The script's arguments for a stack on this machine.

    Args:
        environment: with the settings of its ports.
    """
    options = {"--reward-url": "REWARD_PORT", "--judge-url": "JUDGE_PORT", "--embedding-url": "EMBEDDING_PORT"}
    return [f"{option}=http://127.0.0.1:{environment[port]}" for option, port in options.items()]
