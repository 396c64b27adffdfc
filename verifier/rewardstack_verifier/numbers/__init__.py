"""Decide whether two expressions have the same value.

`tree` defines the expressions. `equality.same` uses the first of these methods that applies: rational numbers are
compared exactly (`rational`), rational functions modulo primes (`residues`), algebraic numbers with a proven bound
(`separation`), and all other numbers with interval arithmetic at rising precision (`balls`). All other expressions
with symbols are compared at sample `points`. A computation may take long or crash the process, so run it in a process
that can be killed.
"""
