"""Start a reward server on localhost:6000 to try reward functions: `python -m rewardstack_rules.reward_server`.

It accepts the same settings and arguments as `run_reward_server`, the entry point for training, but listens on
localhost unless `--host` is given.
"""

from __future__ import annotations

import sys

from rewardstack_rules.run_reward_server import main as run

if __name__ == "__main__":
    run(["--host", "localhost", *sys.argv[1:]])
