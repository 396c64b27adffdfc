"""What runs in the launcher and in the confined processes that it forks; Python 3.10 and its library suffice."""
