"""Scoring: requests are read (`items`), grouped by route and scored (`pipeline`) by stages around a scorer."""
