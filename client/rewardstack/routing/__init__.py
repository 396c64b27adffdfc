"""Routing of a `data_source` to its scorer: the route table, the syntax of routes, and composite routes.

This package does not depend on services: a composite receives a function that scores its parts.
"""
