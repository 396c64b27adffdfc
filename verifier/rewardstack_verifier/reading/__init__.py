"""What an answer says: its text as tokens (`lexer`, with `characters` and `commands` as its tables), those as syntax.

Everything that changes a text's looks and not its meaning ends in the lexer: fonts, colours, sizes, spaces, delimiters,
Unicode. The `parser` gives a tree of `syntax`, whose leaves are the expressions of `numbers.tree`.
"""
