"""Confines a process permanently: takes away system calls, files and capabilities that its code does not need.

`Confinement` (module `confinement`) applies three layers of the kernel: it drops all capabilities, limits
the files that can be read (`landlock`), and allows a list of system calls (`seccomp`, `syscalls`). A refused call
raises `PermissionError` and does not kill the process: libraries fall back, and other code fails with a reason.

It needs only the standard library and does not depend on reward functions: any process can use it.
"""
