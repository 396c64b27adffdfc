"""Score samples. Rules (reward functions) run inline, or in isolated processes that can be killed.

The packages `http` and `jobs` call `Evaluator.score`.
"""
