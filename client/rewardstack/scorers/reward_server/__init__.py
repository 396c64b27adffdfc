"""Scores by a reward server's `/v1/score`: its rules, and the judge or embedding that it relays to.

No rule enters: what a rule is worth is decided at the server.
"""
