"""The data of the status page: the last hour by minute, and the current state, of all servers that share a Redis.

A replica is one such server. The counts are those that each server also reports at `/metrics` (package `metrics`).
"""
