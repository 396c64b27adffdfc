"""Reward functions: the built-in ones, custom ones, and the registry of both.

This package does not depend on the server. A function gets a response, references and `extra_info`, and returns an
outcome.
"""
