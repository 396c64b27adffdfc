"""Runs tasks in child processes that can be killed, one task at a time in each.

    server process ── Unix socket ── supervisor ── control socket ── zygote
     `IsolationClient`              `Scheduler` └─ a socket pair each ─ children, forked by the zygote
                                        └─ heartbeats ─ its parent, which watches

A task is one call of a function, the entry, with a dict. The supervisor (one for all processes of a server, one thread,
asyncio) queues tasks, enforces deadlines and separates slow tasks. The zygote has imported the entry. It forks, kills
and reaps the children, so that no process id is ever used after it was freed. `prepare` (module `launch`) starts
supervisor and zygote. If one of them hangs, it is killed (module `watch`) and replaced as if it had died. The package
`confinement` confines children.

Of the server's packages, this one imports only `confinement` and `process`: the supervisor and the zygote load only
what they need, and stay single-threaded.
"""
