"""Score samples by rules: inline, in isolated processes, or with the math verifier.

The packages `http` and `jobs` call `Evaluator.score`.
"""
