"""Code of the launcher and of the confined processes that it forks; requires only Python 3.10."""
