"""Scorers, one package or module for each kind of service, and the `factory` that makes the scorer of a route.

Caching, batching and error policies are the pipeline's.
"""
