"""Sends requests to services: load balancing over several URLs, concurrency limits, retries, and timeouts.

This package does not interpret bodies: it sends bytes, passes the body of the reply to the function `Message.read`, and
returns the result or raises a typed error.
"""
