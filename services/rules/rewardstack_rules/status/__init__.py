"""The data of the status page: the last hour, by minute, of all servers that share a Redis, and the current state.

A server is called a replica here. All numbers come from the package `metrics`, and are the same as in `/metrics`.
"""
