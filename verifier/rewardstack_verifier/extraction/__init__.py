"""Find the final answer in a response in linear time, without third-party libraries: `extract`.

Only the visible text is searched (`visible_text`). The answer is the first of these that exists: the last `\\boxed`
(`boxes`) or `<answer>` tag; the last `####` line; an announced answer (`announcements`); the whole response, if it is
only an answer; in `flexible` mode, the last formula or number (`expressions`). `choices` finds the letter of an option.
"""
