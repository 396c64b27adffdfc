"""The reward server over HTTP: authentication, admission, request bodies, protocols and replies.

This package does not score: endpoints pass samples to the package `scoring`, and jobs to the package `jobs`.
"""
