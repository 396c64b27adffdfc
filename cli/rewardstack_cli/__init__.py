"""The command line tool `rewardstack`, with one module for each command.

The commands score samples with the same client functions as a trainer, except `submit`, which uses the reward server's
jobs.
"""
