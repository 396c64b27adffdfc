"""How a public data set becomes rows that trainers read: a file for each data set, and what they share.

Nothing is scored here: a recipe reads, chooses and configures rows, `output` writes them.
"""
