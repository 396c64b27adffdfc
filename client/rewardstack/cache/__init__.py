"""The result cache: keys, an in-process cache, and an optional Redis behind it, which may fail at any time.

It does not depend on scorers: it maps keys to scores.
"""
