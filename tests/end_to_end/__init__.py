"""The end-to-end script: one program that checks a running stack from outside, however it was started.

    python -m tests.end_to_end --reward-url http://localhost:6000 --judge-url … --embedding-url …

It needs the package `rewardstack` and nothing else, so it runs beside a trainer, in a pod and under Apptainer alike.
"""
