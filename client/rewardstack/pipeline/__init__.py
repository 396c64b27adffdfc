"""Scoring: `items` reads requests, `pipeline` groups them by route and scores them, in `stages` around a `scorer`."""
