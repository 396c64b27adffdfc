"""Soak: a native stack under load, hostile requests and faults for an hour, which must not make it grow."""
