"""Reward functions: the built-in ones, the user's own, and the registry that knows them all by name.

No server enters: a function gets a response, references and fields, and gives an outcome.
"""
