"""What every way of running the services shares: settings, run directory, processes, console, errors."""
