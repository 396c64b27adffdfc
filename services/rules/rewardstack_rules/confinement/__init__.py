"""Confine a process permanently to the system calls, files and capabilities that its code needs.

`Confinement` (module `confinement`) uses three mechanisms of the kernel: it drops all capabilities, limits the files
that the process can access (`landlock`), and allows only listed system calls (`seccomp`, `syscalls`). A refused call
raises `PermissionError` instead of killing the process, so that libraries can use a fallback.

The package needs only the standard library and does not depend on reward functions.
"""
