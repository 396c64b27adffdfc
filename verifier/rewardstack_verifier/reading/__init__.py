"""Parse an answer into syntax trees: `readings.readings` returns a tree for each possible meaning.

The `lexer` splits the text into tokens and drops what only changes its looks: fonts, colors, sizes, spaces, delimiters,
Unicode variants. The `parser` reads formulas, other modules read quantities, dates or words. A tree consists of the
nodes of `syntax` and the expressions of `numbers.tree`.
"""
