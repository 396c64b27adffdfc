"""Whether two answers that are read (`reading`) are equal: `compare`.

Each is read in every way that the `table` has, and compared by its row for their types; at the end of all rows stand
`expressions`, equal by their values (`numbers`), and `decimals`, equal by the digits that they show.
"""
