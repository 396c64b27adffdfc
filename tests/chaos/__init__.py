"""Chaos: the stack in containers loses its parts one after the other while trainers score, and no score may suffer."""
