"""The command line tool `rewardstack`, with one module for each command.

Commands that score samples call the same client functions as a trainer does. Only `submit` sends the samples to the
reward server as a job instead.
"""
