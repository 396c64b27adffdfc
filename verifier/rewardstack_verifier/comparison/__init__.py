"""Compare an answer with a reference: `compare.compare`.

Each text is parsed in all possible ways (`reading`). Two readings are compared by the first row of a table
(`compare.COMPARISONS`) that applies to their types. In the last step, `values` compares expressions by value
(`numbers`), and decimals by their digits.
"""
