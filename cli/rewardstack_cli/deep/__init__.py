"""`rewardstack check --deep`: what must hold of a whole stack, checked from outside, however it was started.

`checks` is the table of all that is checked; each check is a function of a `Stack`, and each module holds those of one
concern.
"""
