"""What callers may send, and what they get: one module a protocol.

No rule enters: a protocol makes requests of a body, and a body of scores.
"""
