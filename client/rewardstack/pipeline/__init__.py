"""The way of every sample, in a trainer, in the reward server and in a worker.

`pipeline` finds the route and its scorer, `items` reads the request and chooses its references; then the `runner` has
the scorer prepare the sample and name its key, looks into this process's memory, asks the scorer for what it has at
once, then Redis, then the scorer's service; `fallback` stands in for what failed, and the policy settles the rest.
`outcomes` says what each of them comes to, `explanation` is the same way with every step noted.

Nothing enters that knows one kind of service, or HTTP: those are `scorers` and `transport`.
"""
