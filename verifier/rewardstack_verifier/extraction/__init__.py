"""Find the final answer in a response in linear time, without third-party libraries: `extract`.

Only the `visible` text counts. The answer is in the last box (`boxes`) or answer tag, else on the last `####` line;
else it is `announced`; else the response is only an answer (`bare`); else, in `flexible` mode, it is the last formula
or number (`expressions`). `choices` finds the letter of an option.
"""
