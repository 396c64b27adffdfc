"""The result cache: keys, a Redis that may vanish at any time, and a small memory in front of it.

No scorer enters: a value is a number under a key, whoever gave it.
"""
