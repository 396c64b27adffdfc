"""Code of the launcher and of the confined processes that it forks. Needs only Python 3.10 or later."""
