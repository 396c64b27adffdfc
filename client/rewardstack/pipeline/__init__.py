"""Scoring: `items` validates requests, `pipeline` scores them by route, `stages` has the steps around a `scorer`.

`arguments` reads the arguments of `compute_score`, and `missing` warns about samples without a score.
"""
