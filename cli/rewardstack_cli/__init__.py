"""The command line tool `rewardstack`, with one module for each command.

Each command reads its input, calls the same functions as a trainer, and writes the result.
"""
