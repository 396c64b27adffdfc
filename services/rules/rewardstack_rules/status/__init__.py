"""The data of the status page: the last hour by minute, of all replicas that share a Redis, and the current state.

This package does not count: its numbers come from `metrics`, and are those of `/metrics`.
"""
