"""Request and reply formats, one module per protocol.

A protocol converts bodies to requests and scores to replies; it does not score.
"""
