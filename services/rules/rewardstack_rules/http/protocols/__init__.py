"""The protocols of trainers and of this server, one module each.

A protocol converts request bodies to samples, and scores to replies.
"""
