"""The result cache: keys, a Redis that may vanish at any time, and a small memory in front of it."""
