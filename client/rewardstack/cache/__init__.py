"""The result cache: scores by key, in this process's memory and in an optional Redis, which may fail at any time.

This package does not depend on the scorers.
"""
