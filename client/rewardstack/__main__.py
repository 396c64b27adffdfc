"""`python -m rewardstack` is the command `rewardstack`."""

from rewardstack.cli.main import main

raise SystemExit(main())
