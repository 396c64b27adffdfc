"""Decide whether two expressions have the same value.

`tree` defines the expressions. `equality.same` uses the first of these methods that applies: rational numbers are
compared exactly (`rational`), rational functions modulo primes (`residues`), other expressions with symbols at sample
`points`, algebraic numbers with a proven bound (`separation`), and all other numbers with interval arithmetic at rising
precision (`balls`). A computation may take long or crash the process, so run it in a process that can be killed.
"""
