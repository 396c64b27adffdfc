"""Scoring: reads requests (`items`), groups them by route and scores them (`pipeline`) in stages around a scorer."""
