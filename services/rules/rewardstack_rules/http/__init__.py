"""The HTTP side of the reward server: authentication, admission control, request bodies, protocols and replies.

Endpoints pass samples to the package `scoring`, and jobs to the package `jobs`.
"""
