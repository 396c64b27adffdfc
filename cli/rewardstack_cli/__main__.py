"""Run the command `rewardstack` as `python -m rewardstack_cli`."""

from rewardstack_cli.main import main

raise SystemExit(main())
