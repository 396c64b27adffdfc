"""How the client reaches a service: several URLs, limits on what is in flight, retries, and timeouts.

Nothing enters that knows what a body means: bytes go out, bytes or a typed error come back.
"""
