"""The chart: what Helm renders of it, and its pods as containers."""
