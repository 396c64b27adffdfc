"""Sends requests to services: load balancing over several URLs, concurrency limits, retries, and timeouts.

This package does not interpret bodies: it sends bytes, and returns what the message's `read` returns, or a typed error.
"""
