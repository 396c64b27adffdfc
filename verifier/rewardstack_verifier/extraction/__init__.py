"""Find the final answer in a response, in time linear in its length: `extract`.

Of what is `visible` the last of the `boxes` counts, the last answer tag, or the last `####` line; then what is
`announced`, then a `bare` answer, then, if asked for, the last of the `expressions`. No library is loaded.
"""
