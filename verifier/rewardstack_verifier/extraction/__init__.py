"""Where the answer stands in a response, by its marks (`strict`), or without any as well (`lenient`): `extract`.

Of what is `visible` the last of the `boxes` counts, the last answer tag, or what stands behind the last `####`. Without
a mark it is what follows "the answer is", a response that is a `bare` answer, or the value in the `prose` of the last
of the `sentences`, if that is `settled`: what it has `stated`, says in `words`, or shows in its last `formulas`
(`plain` ones, without delimiters, too). So it is in English; what a response is `closing` with in other `languages` is
found by the words of `lexicon.doubts`, with what is `said` in words. Numbers that are `spelled` are digits before.
It takes linear time, and loads nothing.
"""
