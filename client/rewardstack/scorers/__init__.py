"""Scorers, one package or module for each kind of service, and the `factory` that creates them.

The pipeline provides caching, batching and error policies.
"""
