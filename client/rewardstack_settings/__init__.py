"""Classes to declare settings: `setting` for their names and defaults, `kinds` for the kinds of their values.

Each distribution declares its settings in a `settings_table`. This package needs only the standard library, because the
launchers import it with the system's Python.
"""
