"""Scores samples by rules: inline, in isolated processes, or by the math verifier.

The packages `http` and `jobs` call `Evaluator.score`.
"""
