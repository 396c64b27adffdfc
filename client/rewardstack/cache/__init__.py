"""The result cache: scores by key, in this process's memory and in an optional Redis, whose errors never fail a score.

This package does not depend on the scorers.
"""
