"""Takes from a process, for good, what code that it runs does not need: system calls, files, capabilities.

`Confinement` (module `confinement`) applies three layers of the kernel: it drops all capabilities, limits
the files that can be read (`landlock`), and allows a list of system calls (`seccomp`, `syscalls`). A refusal is an
error, `PermissionError`, and no death: libraries do without, and code that cannot fails with a reason.

It needs nothing but the standard library and knows nothing of reward functions: any process can use it.
"""
