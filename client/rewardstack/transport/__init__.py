"""How the client reaches a service: several URLs, limits on what is in flight, retries, and timeouts.

This package does not know what a body means: it sends bytes and returns bytes or a typed error.
"""
