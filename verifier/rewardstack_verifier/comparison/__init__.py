"""Compare an answer with a reference: `compare.compare`.

Each text is parsed in all possible ways (`reading`), and two readings are compared by the row of a table for their
types. In the last step, `values` compares expressions by value (`numbers`), and decimals by their digits.
"""
