"""Large evaluations as jobs: taken by the reward server, scored in chunks by workers, kept in a Redis that persists.

Redis Queue (RQ) carries the chunks to the workers, and gives at least once. What is true of a job stands in the job's
own data: a chunk is scored until one result of it is committed, and only the first commit of a chunk counts, so each
item appears once in the result. A chunk that got lost on its way, with its worker or with RQ's list, is sent again.

| module | |
| --- | --- |
| `store` | what the server does: takes a job, tells its state, streams its results, cancels it |
| `ledger` | what a worker does: begins, renews, puts off and commits a chunk |
| `scripts` | the steps that both take in Redis, each of them atomic |
| `delivery` | RQ: what is queued, and what a worker will run of it |
| `chunk` | the function that RQ runs |
| `background` | chunks that wait for models, beside the worker's own |
| `lease`, `sweeper` | notice that a worker is gone, and send its chunk again |
| `worker` | the process |
| `limits` | what one API key may have in the queue |
| `audit` | who had what scored when, in the log |

No HTTP enters: `http.protocols.jobs` and `.upload` call the store.
"""
