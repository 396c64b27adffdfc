"""How each kind of service is asked: one room a service, and the factory that makes the scorer of a route.

No order of work enters: caching, coalescing, lanes and fallback are the pipeline's.
"""
