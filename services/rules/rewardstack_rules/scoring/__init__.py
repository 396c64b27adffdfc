"""How the server evaluates a sample by a rule: inline, in isolated processes, or by the verifier of mathematics.

No HTTP enters, and no job: both call `Evaluator.score`.
"""
