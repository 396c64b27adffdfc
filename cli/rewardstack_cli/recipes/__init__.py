"""Recipes that convert public data sets into rows for trainers: a module for each data set, and shared modules.

A recipe reads and selects rows and adds scoring options to them; `output` writes the rows. Nothing is scored.
"""
