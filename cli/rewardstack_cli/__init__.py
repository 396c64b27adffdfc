"""The command `rewardstack`: one module for each command; `main` only dispatches.

No command implements scoring: each one reads its input, calls the same functions as a trainer, and writes the result.
"""
