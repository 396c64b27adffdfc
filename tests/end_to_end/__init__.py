"""`rewardstack check --deep` against whole stacks, however they were started."""
