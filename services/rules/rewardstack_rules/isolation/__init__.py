"""Runs one task at a time in a process that can be killed.

    server process ── Unix socket ── supervisor ── control socket ── zygote
     `IsolationClient`              `Scheduler` └─ a socket pair each ─ children, forked by the zygote
                                        └─ heartbeats ─ its parent, which watches

The supervisor (one for all processes of a server, one thread, asyncio) queues tasks, enforces deadlines and separates
slow tasks. The zygote has imported the function that children call; it forks them, kills them and reaps them, so that
no process id is ever used after it was freed. `prepare` (module `launch`) starts both. If one of them hangs, it is
killed (module `watch`) and replaced as if it had died. Package `confinement` confines children.

This package does not import other packages of the server, except `confinement`: the supervisor and the zygote load only
what they need, and stay single-threaded.
"""
