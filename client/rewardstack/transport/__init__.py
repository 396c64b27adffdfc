"""How the client reaches a service: several URLs, limits on requests in flight, retries, and timeouts.

This package does not interpret bodies: it sends bytes, and returns what the message's `read` returns, or a typed error.
"""
