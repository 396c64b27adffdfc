"""Which route takes a `data_source`: the table of routes, the syntax they are written in, and composites of them.

Nothing enters that asks a service: a composite is handed a function that evaluates its parts.
"""
