"""Decide whether two expressions are equal: different by numbers, or equal by algebra.

`tree` has the parsed expressions. `equality.same` uses the first method that decides: `rational` numbers exactly,
rational functions by `residues`, algebraic numbers by `separation`, everything else by `balls` with rising precision
and, if there are symbols, at `points`. Nothing here reads text. A computation may take long or crash the process: run
it where it can be killed.
"""
