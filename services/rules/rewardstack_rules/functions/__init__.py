"""Reward functions: the built-in ones, the user's own, and the registry that knows them all by name.

This package does not depend on the server: a function gets a response, references and fields, and returns an outcome.
"""
