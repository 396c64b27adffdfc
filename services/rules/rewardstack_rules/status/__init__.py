"""What the status page tells: the last hour by minutes, of all replicas where they share a Redis, and how it is now.

Nothing is counted here: what is told comes from `metrics`, and is what `/metrics` tells.
"""
