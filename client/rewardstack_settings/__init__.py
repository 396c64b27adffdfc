"""Declaration of settings and their kinds of values. Each distribution has a `settings_table`.

It needs only the standard library, because the launchers import it with the system's Python.
"""
