"""Compare an answer with a reference: `compare.compare`.

Each text is parsed into readings, one for each possible meaning (`reading`). Two readings are compared by the first row
of a table (`compare.COMPARISONS`) that applies to their types. `values` compares the expressions in them by value
(`numbers`), and decimals by their digits.
"""
