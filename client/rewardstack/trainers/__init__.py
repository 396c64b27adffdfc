"""Integrations, one module per trainer: they convert a trainer's arguments to requests, and scores to its rewards.

Each module calls the public API in `rewardstack.api`; `columns` has the helpers that several modules use.
"""
