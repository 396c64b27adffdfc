"""Parse an answer into syntax trees: `readings.readings` returns a tree for each possible meaning.

The `lexer` splits the text into tokens, and drops fonts, colors, sizes, spaces, delimiters and Unicode variants. The
`parser` parses formulas; other modules parse quantities, dates or words. A tree consists of the
nodes of `syntax` and the expressions of `numbers.tree`.
"""
