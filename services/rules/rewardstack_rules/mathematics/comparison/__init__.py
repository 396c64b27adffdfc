"""Whether two answers that are read (`reading`) are equal: `compare`.

`structures` has the table by their types; `expressions` are equal by their values (`numbers`), `decimals` by the digits
that they show.
"""
