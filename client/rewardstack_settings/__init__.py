"""Classes to declare settings: `setting` for their names and defaults, `kinds` for the kinds of their values.

Each distribution declares its settings in a `settings_table`. This package needs only the standard library, because
scripts such as `run_vllm_server.py` import it with the system's Python.
"""
