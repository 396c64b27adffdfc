"""Hostile requests of every kind that is known, and what every answer to one must be."""
