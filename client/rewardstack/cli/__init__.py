"""The command `rewardstack`: one file a command; `main` only dispatches."""
