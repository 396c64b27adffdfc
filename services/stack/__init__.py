"""Code that all deployments share: settings, run directory, processes, console output, errors."""
