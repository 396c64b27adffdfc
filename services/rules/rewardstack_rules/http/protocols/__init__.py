"""The request and reply formats of trainers and of this server, one module per protocol.

A protocol converts request bodies to samples, and scores to replies; it does not score.
"""
