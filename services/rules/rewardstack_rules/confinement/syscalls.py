"""Tables of system calls: those that confined code may use, and those that a setting may add.

A table has an entry `name:x86-64:arm64` for each call, with `-` where an architecture does not have the call. The
numbers are from the kernel's `asm/unistd_64.h` and `asm-generic/unistd.h`. Calls that are in no table are always
refused: mounts, kernel modules, keyrings, System V and POSIX queues, `ptrace`, `process_vm_*`, `io_uring`, namespaces,
BPF, extended attributes.
"""

from __future__ import annotations

from typing import NamedTuple


class Number(NamedTuple):
    """The number of a system call on each architecture; None if the architecture does not have the call."""

    x86_64: int | None
    aarch64: int | None


def _numbers(table: str) -> dict[str, Number]:
    rows = (row.split(":") for row in table.split())
    return {name: Number(*(None if text == "-" else int(text) for text in numbers)) for name, *numbers in rows}


NEEDED = _numbers("""
    read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 preadv:295:69 pwritev:296:70
    preadv2:327:286 pwritev2:328:287 lseek:8:62 close:3:57 close_range:436:436 dup:32:23 dup2:33:- dup3:292:24
    open:2:- openat:257:56 stat:4:- fstat:5:80 lstat:6:- newfstatat:262:79 statx:332:291 access:21:-
    faccessat:269:48 faccessat2:439:439 readlink:89:- readlinkat:267:78 getdents:78:- getdents64:217:61 getcwd:79:17
    chdir:80:49 fchdir:81:50 umask:95:166 statfs:137:43 fstatfs:138:44 fadvise64:221:223 readahead:187:213
    sendfile:40:71 fcntl:72:25 ioctl:16:29 pipe:22:- pipe2:293:59 poll:7:- ppoll:271:73 select:23:- pselect6:270:72
    epoll_create:213:- epoll_create1:291:20 epoll_ctl:233:21 epoll_wait:232:- epoll_pwait:281:22
    epoll_pwait2:441:441 eventfd:284:- eventfd2:290:19 timerfd_create:283:85 timerfd_settime:286:86
    timerfd_gettime:287:87 recvfrom:45:207 sendto:44:206 shutdown:48:210 getsockopt:55:209 getsockname:51:204
    getpeername:52:205 mmap:9:222 munmap:11:215 mremap:25:216 mprotect:10:226 madvise:28:233 brk:12:214 msync:26:227
    mincore:27:232 mlock:149:228 munlock:150:229 membarrier:324:283 get_mempolicy:239:236 clone:56:220 futex:202:98
    futex_waitv:449:449 futex_wake:454:454 futex_wait:455:455 futex_requeue:456:456 set_robust_list:273:99
    set_tid_address:218:96 rseq:334:293 arch_prctl:158:- sched_yield:24:124 sched_getaffinity:204:123
    sched_getparam:143:121 sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126
    sched_rr_get_interval:148:127 getcpu:309:168 exit:60:93 exit_group:231:94 restart_syscall:219:128
    nanosleep:35:101 clock_nanosleep:230:115 clock_gettime:228:113 clock_getres:229:114 gettimeofday:96:169
    time:201:- times:100:153 alarm:37:- pause:34:- setitimer:38:103 getitimer:36:102 timer_create:222:107
    timer_settime:223:110 timer_gettime:224:108 timer_getoverrun:225:109 timer_delete:226:111 rt_sigaction:13:134
    rt_sigprocmask:14:135 rt_sigreturn:15:139 rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133
    sigaltstack:131:132 getpid:39:172 getppid:110:173 gettid:186:178 getuid:102:174 geteuid:107:175 getgid:104:176
    getegid:108:177 getresuid:118:148 getresgid:120:150 getgroups:115:158 getpgrp:111:- getpgid:121:155
    getsid:124:156 getpriority:140:141 getrusage:98:165 getrlimit:97:163 setrlimit:160:164 prlimit64:302:261
    prctl:157:167 uname:63:160 sysinfo:99:179 getrandom:318:278 capget:125:90
""")
"""Calls that the interpreter and the built-in reward functions need, such as those for files, memory, threads and time.
`seccomp.ARGUMENTS` restricts some of them by an argument."""

ABSENT = _numbers("clone3:435:435 openat2:437:437")
"""Calls whose arguments are in memory, where a filter cannot check them. They fail with ENOSYS, so that libraries use
`clone` and `openat` instead."""

GROUPS = {
    "network": _numbers("""
    socket:41:198 socketpair:53:199 connect:42:203 bind:49:200 listen:50:201 accept:43:202 accept4:288:242
    sendmsg:46:211 recvmsg:47:212 sendmmsg:307:269 recvmmsg:299:243 setsockopt:54:208
"""),
    "programs": _numbers("""
    execve:59:221 fork:57:- vfork:58:- wait4:61:260 waitid:247:95 kill:62:129 tgkill:234:131 setsid:112:157
    setpgid:109:154
"""),
    "write": _numbers("""
    creat:85:- truncate:76:45 ftruncate:77:46 fallocate:285:47 fsync:74:82 fdatasync:75:83 sync_file_range:277:84
    mkdir:83:- mkdirat:258:34 rmdir:84:- unlink:87:- unlinkat:263:35 rename:82:- renameat:264:38 renameat2:316:276
    link:86:- linkat:265:37 symlink:88:- symlinkat:266:36 flock:73:32 copy_file_range:326:285 memfd_create:319:279
"""),
}
"""Calls that a setting can add, by group name."""

SINGLE = _numbers("""
    sched_setaffinity:203:122 sched_setscheduler:144:119 setpriority:141:140 mlock2:325:284 mlockall:151:230
    munlockall:152:231 mbind:237:235 set_mempolicy:238:237 inotify_init1:294:26 inotify_add_watch:254:27
    inotify_rm_watch:255:28 signalfd4:289:74 splice:275:76 tee:276:77 pkey_alloc:330:289 pkey_free:331:290
    pkey_mprotect:329:288 seccomp:317:277 ioprio_get:252:31 chmod:90:- fchmod:91:52 fchmodat:268:53
    fchmodat2:452:452 utime:132:- utimes:235:- utimensat:280:88
""")
"""Calls that a setting can add only one by one. Calls that change modes and times of files are in no group, because
Landlock cannot limit them to folders."""

EXECUTE_OPEN = _numbers("execveat:322:281")
"""The call that runs an open file; `seccomp.ARGUMENTS` restricts it to one descriptor. No setting can add it."""

NEWEST = 470
"""The highest call number that was considered for these tables (`listns` of Linux 6.19). Calls with higher numbers, and
those of x32, fail with ENOSYS."""

NUMBERS = {
    **NEEDED,
    **ABSENT,
    **SINGLE,
    **EXECUTE_OPEN,
    **{name: number for group in GROUPS.values() for name, number in group.items()},
}

ADDABLE = frozenset(GROUPS) | {name for group in (SINGLE, *GROUPS.values()) for name in group}
"""Names that `REWARD_FUNCTIONS_ALLOW` accepts."""


def expand_groups(names: tuple[str, ...]) -> frozenset[str]:
    """Return the system calls with these names; the name of a group means all its calls."""
    return frozenset(call for name in names for call in GROUPS.get(name, (name,)))
