"""The command `rewardstack`: one file a command; `main` only dispatches.

No scoring enters: a command reads, calls what a trainer calls, and writes.
"""
