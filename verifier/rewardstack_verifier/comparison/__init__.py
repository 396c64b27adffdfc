"""Compare two parsed answers (`reading`): `compare`.

Each text is read in every possible way, and two readings are compared by the table row for their types. At the end,
`values` compares expressions by value (`numbers`), and decimals by the digits that they show.
"""
