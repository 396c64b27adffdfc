"""`rewardstack check --deep`: check a whole stack from outside, however it was started.

`checks` lists all checks. Each check is a function of a `Stack`.
"""
