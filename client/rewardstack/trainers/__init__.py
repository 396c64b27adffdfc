"""Integrations, one module per trainer.

Each module converts the trainer's arguments to requests, and scores to rewards in the form that the trainer accepts. It
calls the public API in `rewardstack.api`; `columns` has the helpers that several modules use.
"""
