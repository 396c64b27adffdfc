"""Decide whether two expressions have the same value.

`tree` defines the expressions. `equality.same` tries several methods: `rational` compares rational numbers exactly,
`residues` rational functions modulo primes, `separation` algebraic numbers with a proven bound, and `balls` all other
values with interval arithmetic at rising precision. Expressions with symbols are compared at sample `points`. A
computation may take long or crash the process, so run it in a process that can be killed.
"""
