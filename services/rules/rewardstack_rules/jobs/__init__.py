"""Large evaluations as jobs: accepted by the reward server, scored in chunks by workers, kept in a persistent Redis.

Redis Queue (RQ) delivers the chunks to workers at least once. The job's own data is authoritative: a chunk is delivered
until one result of it is committed, and only the first commit of a chunk counts, so each item appears once in the
result. A chunk that is lost in transit, with its worker or with RQ's list, is sent again.

| module | |
| --- | --- |
| `store` | the server's side: accepts a job, returns its state, streams its results, cancels it |
| `ledger` | the worker's side: starts, renews, postpones and commits a chunk |
| `scripts` | the atomic steps of both in Redis |
| `delivery` | RQ: queued chunks, and the only function that a worker runs |
| `chunk` | the function that RQ runs |
| `background` | chunks that wait for models, in threads |
| `lease`, `sweeper` | detect that a worker died, and send its chunk again |
| `worker` | the process |
| `limits` | limits of one API key in the queue |
| `audit` | log of who submitted what when |

This package does not use HTTP: `http.protocols.jobs` and `.upload` call the store.
"""
