"""Shared by all deployments: settings, run directory, processes, console output, errors."""
