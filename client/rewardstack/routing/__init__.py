"""Routing of a `data_source` to its scorer: the route table, the syntax of routes, and composite routes.

This package does not call services: a composite scores its parts with a function that its caller passes in.
"""
