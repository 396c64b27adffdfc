"""Runs the policy's program against tests: the reward function `code`.

    runner (`runner`: tests, comparison, verdict) ─ launcher (`inside.launcher`, a warm interpreter) ─ candidate

The runner is an isolated process, one per core. It starts a launcher that never gets a test's expected output: the
program, its input and its output are passed as descriptors of memory files. The launcher forks one confined process for
each test (package `confinement`). Tests that are programs themselves run in a second such process (`inside.tester`),
and call the candidate's functions over a socket on which only plain values travel.

What is in `inside` runs under the interpreter of CODE_PYTHON and needs nothing but the standard library.
"""

RUNNER_VERSION = "2"
"""Version of the execution environment and of verdicts, part of cache keys. Raise it when a verdict can change."""
VARIABLES = ("CODE_PYTHON", "CODE_BOUNDARY", "CODE_TIMEOUT")
"""Environment variables that runners read."""
