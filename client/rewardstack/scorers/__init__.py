"""Scorers: one module or package for each kind of service that scores samples, and the `factory` that creates them.

The pipeline (`rewardstack.pipeline`) adds caching, batching and error policies.
"""
