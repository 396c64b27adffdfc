"""`rewardstack check --deep`: checks of a whole stack from outside, however it was started.

`checks` is the table of all checks; each check is a function of a `Stack`, and each module holds the checks of one
concern.
"""
