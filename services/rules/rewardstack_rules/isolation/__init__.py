"""Run tasks in child processes that can be killed. Each child runs one task at a time.

    server process ── Unix socket ── supervisor ── control socket ── zygote
     `IsolationClient`              `Scheduler` └─ one socket pair each ─ children, forked by the zygote
                                        └─ heartbeats ─ parent process, which watches the supervisor

A task is one call of a function, the entry, with a dict. It belongs to a tenant, for example one of the server's
clients. The supervisor, a single thread with an asyncio loop, queues tasks, enforces timeouts and moves slow tasks to a
separate pool. The processes of a server share one supervisor per configuration. The zygote imports the entry, then
forks, kills and reaps the children. Because no other process reaps them, a kill can never hit a reused process id.
`start_supervisor` (module `launch`) starts the supervisor, which starts the zygote. If one of the two hangs, it is
killed (module `watch`) and replaced as if it had died. The package `confinement` confines children.

Within `rewardstack_rules`, this package imports only `confinement` and `process`, so that the supervisor and the
zygote stay small and single-threaded.
"""
