"""Evaluates samples by rules: inline, in isolated processes, or by the math verifier.

This package uses neither HTTP nor jobs: both call `Evaluator.score`.
"""
