"""`python -m rewardstack_cli` is the command `rewardstack`."""

from rewardstack_cli.main import main

raise SystemExit(main())
