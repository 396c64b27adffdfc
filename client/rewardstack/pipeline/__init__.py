"""The way of every sample, in a trainer, in the reward server and in a worker: references, route, cache, scorer, score.

Nothing enters that knows one kind of service, or HTTP: those are `scorers` and `transport`.
"""
