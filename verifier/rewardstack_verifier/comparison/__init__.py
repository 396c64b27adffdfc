"""Whether two answers that are read (`reading`) are equal: `compare`.

Each is read in every way that there is, and two readings are compared by the row for their types; at the end of all
rows are `values`: expressions are equal by their values (`numbers`), and decimals by the digits that they show.
"""
