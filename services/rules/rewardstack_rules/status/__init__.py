"""The data of the status page: the last hour by minute, and the current state, of all servers that share a Redis.

A replica is one such server. All numbers come from the package `metrics`, and are the same as in `/metrics`.
"""
