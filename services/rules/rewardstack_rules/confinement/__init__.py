"""Confines a process permanently: takes away system calls, files and capabilities that its code does not need.

`Confinement` (module `confinement`) uses three mechanisms of the kernel: it drops all capabilities, limits the files
that the process can access (`landlock`), and allows only listed system calls (`seccomp`, `syscalls`). A refused call
raises `PermissionError` and does not kill the process: libraries use a fallback, and other code fails with a reason.

The package needs only the standard library and does not depend on reward functions: any process can use it.
"""
