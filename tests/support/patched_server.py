"""A reward server whose limits for clients are others than the shipped ones, for tests that no clock may decide.

`python patched_server.py ARGUMENTS` takes the arguments of `rewardstack_rules.run_reward_server`. The environment
variable `SERVER_CONSTANTS` is a JSON object of objects: the constants to replace, by the name of their module in
`rewardstack_rules.http`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from rewardstack_rules import run_reward_server


def run_gunicorn() -> None:
    """Run gunicorn in this process, which its workers are forked from, so that they have the constants, too."""
    from gunicorn.app.wsgiapp import run  # type: ignore[import-untyped]

    sys.argv = ["gunicorn", "-c", "python:rewardstack_rules.http.gunicorn_conf"]
    run()
    sys.exit()


if __name__ == "__main__":
    for module, constants in json.loads(os.environ["SERVER_CONSTANTS"]).items():
        found = importlib.import_module(f"rewardstack_rules.http.{module}")
        for name, value in constants.items():
            getattr(found, name)
            setattr(found, name, value)
    setattr(run_reward_server, "run_gunicorn", run_gunicorn)  # noqa: B010, as types forbid it
    run_reward_server.main()
