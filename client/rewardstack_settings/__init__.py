"""Every setting of rewardstack in one table (`table.py`), from which all else that names a setting is written.

Needs nothing but Python: the launchers read it with whatever interpreter a machine has.
"""
