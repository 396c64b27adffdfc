"""Recipes that convert public data sets into rows for trainers: a module for each data set, and shared modules.

A recipe reads, selects and configures rows, and `output` writes them. Nothing is scored.
"""
