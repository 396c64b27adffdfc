"""Whether two expressions are equal: refuted by numbers, proved by algebra.

`tree` is what the parser makes of a text. `equality.same` decides, by the first that can: `rational` numbers exactly,
rational functions by `residues`, algebraic numbers by `separation`, everything else by `balls` at rising precision, and
where there are symbols, at `points`. Nothing here reads text. A computation may run long or end the process: run it
where it can be killed.
"""
