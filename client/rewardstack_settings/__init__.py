"""What a setting is: its kinds of values, and how a table declares it. Each distribution has a `settings_table`.

Needs nothing but Python: the launchers read it with whatever interpreter a machine has.
"""
