"""Compare an answer with a reference: `compare.compare`.

Each text is parsed in every possible way (`reading`), and two readings are compared by the table row for their types.
At the end, `values` compares expressions by value (`numbers`), and decimals by the digits that they show.
"""
