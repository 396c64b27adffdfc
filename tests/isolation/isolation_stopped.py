"""An entry that cannot be loaded, in a zygote whose end the supervisor sees late."""

import os
import signal
import time

ZYGOTE, SUPERVISOR = os.getpid(), os.getppid()

if os.fork() == 0:
    os.closerange(3, 1024)  # the zygote's socket, which closes with the zygote then
    while os.getppid() == ZYGOTE:
        time.sleep(0.01)
    os.kill(SUPERVISOR, signal.SIGCONT)
    os._exit(0)
os.kill(SUPERVISOR, signal.SIGSTOP)
raise ImportError("it is gone")
