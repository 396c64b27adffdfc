"""Find the final answer in a response in linear time, without third-party libraries: `extract`.

Only the visible text is searched (`visible_text`). The first match is the answer: the last box (`boxes`) or answer tag;
the last `####` line; an announced answer (`announcements`); a response that is only an answer (`bare_answers`); and, in
`flexible` mode, the last formula or number (`expressions`). `choices` finds the letter of an option.
"""
