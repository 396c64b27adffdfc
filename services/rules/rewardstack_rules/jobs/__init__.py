"""Jobs for large evaluations: the reward server accepts a job, workers score it in chunks, and Redis stores it.

Redis Queue (RQ) delivers each chunk to a worker at least once. A chunk that is lost, because its worker died or RQ lost
its entry, is sent again until a result is committed. Only the first commit counts, so each sample appears once in the
results.

| module | purpose |
| --- | --- |
| `store` | for the server: accepts a job, returns its state, streams its results, cancels it |
| `submission`, `durability` | for `store`: write a job's samples to Redis; ensure that the job is on Redis' disk |
| `ledger` | for the worker: claims, renews, postpones and commits a chunk |
| `scripts` | the atomic operations of `store` and `ledger` in Redis |
| `keys`, `codec`, `state` | the Redis keys of a job, the format of its chunks, its status |
| `link` | connections to Redis, and their errors |
| `delivery` | sends chunks through RQ, and lets workers run only `chunk.run` |
| `chunk` | scores a chunk |
| `background` | runs threads for chunks that wait for models or programs |
| `lease`, `sweeper` | detect that a worker died, and send its chunk again |
| `worker`, `heartbeat` | the worker process, and the files that show its health |
| `limits` | limits of one API key in the queue |
| `audit`, `metrics` | audit log and metrics of jobs |

The endpoints are in `http.protocols.jobs`.
"""
