"""Large evaluations as jobs: accepted by the reward server, scored in chunks by workers, kept in a persistent Redis.

Redis Queue (RQ) delivers each chunk to a worker, at least once. What counts is the job's own data in Redis: a chunk is
sent until a result of it is committed, and only the first commit counts, so each sample appears once in the results. A
chunk that is lost, because its worker died or RQ lost its entry, is sent again.

| module | purpose |
| --- | --- |
| `store` | the server's side: accepts a job, returns its state, streams its results, cancels it |
| `ledger` | the worker's side: claims, renews, postpones and commits a chunk |
| `scripts` | the atomic steps of `store` and `ledger` in Redis |
| `delivery` | sends chunks through RQ, and restricts workers to one function |
| `chunk` | that function: scores a chunk |
| `background` | threads for chunks that wait for models |
| `lease`, `sweeper` | detect that a worker died, and send its chunk again |
| `worker` | the worker process |
| `limits` | limits of one API key in the queue |
| `audit` | audit log of jobs |

The endpoints are in `http.protocols.jobs`.
"""
