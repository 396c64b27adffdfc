"""Parse an answer into syntax trees: `readings.parse_readings` returns a tree for each possible meaning.

The `lexer` splits the text into tokens. It drops fonts, colors, sizes, spaces and delimiters, and replaces Unicode
characters by their LaTeX or ASCII notation. The `parser` parses formulas; other modules parse quantities, dates or
words. A tree consists of the nodes of `syntax` and the expressions of `numbers.tree`.
"""
