"""Find the final answer in a response in linear time: `extract`.

In the `visible` text, the last of the `boxes`, the last answer tag, or the last `####` line counts; then an `announced`
answer, then a `bare` answer, then, if requested, the last of the `expressions`. No third-party library is loaded.
"""
