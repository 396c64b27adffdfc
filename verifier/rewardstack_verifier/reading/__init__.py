"""Parse an answer: text to tokens (`lexer`, with the tables `characters` and `commands`), and tokens to syntax.

The lexer removes everything that changes the looks of a text but not its meaning: fonts, colors, sizes, spaces,
delimiters, Unicode. The `parser` returns a tree of `syntax`, whose leaves are the expressions of `numbers.tree`.
"""
