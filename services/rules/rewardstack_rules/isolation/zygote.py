"""The zygote: the process that forks children, and the only one that kills and reaps them.

The zygote imports the entry and has a single thread. The supervisor sends commands, one per message: `["fork", id,
low_priority]` with the child's socket, `["kill", id]`, `["renice", id]`, `["ping", 0]`. The zygote first sends
`["ready"]` or `["broken", reason]`, then `["exited", id]` for every child that has ended, and `["alive"]` in reply to a
ping. It exits when the supervisor ends.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

from rewardstack_rules.confinement.confinement import make_confinement
from rewardstack_rules.isolation.child import Entry, become_child, describe
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.process import NICE, die_with_parent, load_function

MESSAGE_BYTES = 4096

logger = logging.getLogger(__name__)


class Zygote:
    """Forks, kills and reaps children.

    Args:
        control: the socket to the supervisor.
        config: the entry and the limits.
        entry: the imported entry.
    """

    def __init__(self, control: socket.socket, config: IsolationConfig, entry: Entry) -> None:
        self._control = control
        self._config = config
        self._entry = entry
        self._confinement = make_confinement(config.allow, config.files) if config.confined else None
        self._pids: dict[int, int] = {}
        self._wake, self._wake_in = socket.socketpair()
        for end in (self._wake, self._wake_in):
            end.setblocking(False)

    def serve(self) -> None:
        """Handle commands and exits of children until the supervisor closes the socket."""
        signal.set_wakeup_fd(self._wake_in.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        self._send("ready")
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake.fileno() in ready:
                self._wake.recv(4096)
                self._reap()
            if self._control.fileno() in ready and not self._handle_command():
                return

    def _send(self, *words: Any) -> None:
        self._control.send(json.dumps(words).encode())

    def _handle_command(self) -> bool:
        """Handle one command; return False if the supervisor has closed the socket."""
        message, fds, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 1)
        if not message:
            return False
        command, ident, *rest = json.loads(message)
        if command == "ping":
            self._send("alive")
        elif command == "fork":
            self._fork(ident, socket.socket(fileno=fds[0]), low_priority=rest[0])
        elif ident in self._pids:  # a child that is not listed has been reaped
            if command == "kill":
                os.kill(self._pids[ident], signal.SIGKILL)
            else:
                os.setpriority(os.PRIO_PROCESS, self._pids[ident], NICE)
        return True

    def _fork(self, ident: int, sock: socket.socket, low_priority: bool) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            sock.close()
            self._send("exited", ident)
            return
        if pid == 0:
            self._turn_into_child(sock, low_priority, parent)
        sock.close()
        self._pids[ident] = pid

    def _turn_into_child(self, sock: socket.socket, low_priority: bool, zygote: int) -> NoReturn:
        """Run the child in the forked process. Never return to the zygote's loop: exit on any error."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if low_priority:
                os.nice(NICE)
            become_child(sock, self._config, self._entry, self._confinement, zygote)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)  # the supervisor has dropped this child
        except BaseException:  # noqa: BLE001 - the process ends after any error
            sys.excepthook(*sys.exc_info())
            os._exit(1)

    def _reap(self) -> None:
        idents = {pid: ident for ident, pid in self._pids.items()}
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                ident = idents.get(pid)
                if ident is not None:
                    del self._pids[ident]
                    self._send("exited", ident)


def main() -> None:
    """Run the zygote: `python -m rewardstack_rules.isolation.zygote FD PARENT CONFIG`, started by the supervisor."""
    control = socket.socket(fileno=int(sys.argv[1]))
    die_with_parent(int(sys.argv[2]))
    config = IsolationConfig.from_json(sys.argv[3])
    gc.disable()
    try:
        entry = load_function(config.entry)
        if config.warmup:
            load_function(config.warmup)()
    except Exception as error:
        control.send(json.dumps(["broken", describe(error)]).encode())
        raise SystemExit(1) from error
    if len(os.listdir("/proc/self/task")) > 1:
        logger.warning("importing %s starts threads, so forked children may hang; start them when called", config.entry)
    gc.freeze()  # children share these objects in memory, because their garbage collectors do not touch them
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        Zygote(control, config, entry).serve()


if __name__ == "__main__":
    main()
