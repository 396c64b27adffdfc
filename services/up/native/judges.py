"""Run several replicas of a judge behind one address, without the other services: `run_vllm_server.py --replicas`.

`python -m services.up.native.judges RUN_DIR` runs the replicas that RUN_DIR/judges.json describes, until it is
interrupted.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from typing import Any

from services.gateway import config as gateway
from services.judge import engine
from services.stack import packages
from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.os_errors import explain_os_error
from services.stack.processes import defer_signals
from services.stack.rundir import ROOT, RunDir
from services.stack.secrets import Secrets
from services.stack.settings import Settings, load
from services.up.native import programs
from services.up.native.stack import Stack
from services.up.native.supervisor import Supervisor
from services.up.native.up import Startup, StartupTimeout, apply


def main(folder: str) -> int:
    """Serve until interrupted; return the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run = RunDir(folder)
    try:
        _serve(run)
    except (StackError, OSError) as error:
        print(f"ERROR: {explain_os_error(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("the judge is stopped")
        shutil.rmtree(folder)
    return 0


def _serve(run: RunDir) -> None:
    settings, wanted = load(ROOT), json.loads((run.path / "judges.json").read_text(encoding="utf-8"))
    supervisor, is_healthy = Supervisor(run), False
    try:
        apply(supervisor, run, _describe(settings, run, wanted), os.environ)
        with step(f"loading {wanted['model']}"):
            Startup(run, settings).wait()
        is_healthy = True
        say(wanted["announcement"])
        threading.Event().wait()
    except StartupTimeout as error:
        raise StackError(error.problem, "see the lines above") from None
    finally:
        # vLLM ignores SIGTERM while it loads its model. It has no requests to finish then, so kill it.
        with defer_signals():
            supervisor.stop(gently=is_healthy)


def _describe(settings: Settings, run: RunDir, wanted: dict[str, Any]) -> Stack:
    nginx = packages.find().get("nginx")
    if nginx is None:
        raise StackError("several replicas need nginx, which is not installed", "apt-get install nginx")
    secrets, host, port = Secrets(run), wanted["host"], wanted["port"]
    keys = {"VLLM_API_KEY": secrets.add("llm_judge_server_api_key", settings["LLM_JUDGE_SERVER_API_KEY"])}
    # Caches stay in the user's home; temporary files are removed together with the run directory.
    temporary = {"TMPDIR": str(run.temporary)}
    judges = []
    for number, replica in enumerate(wanted["replicas"], start=1):
        name = engine.replica_name(number)
        fields = {"environment": temporary | replica["environment"], "keys": keys, "inherits": True}
        server = f"unix:{run.socket(name)}"
        judges.append(programs.program(name, replica["command"], settings, server=server, **fields))
    listen = {"judge": f"[{host}]:{port}" if ":" in host else f"{host}:{port}"}
    return Stack(
        [*judges, programs.gateway(nginx, settings, run)],
        programs.watch(settings, run),
        configuration={},
        gateway=gateway.files({"judge": [judge.server for judge in judges]}, settings, listen),
        secrets=secrets,
        urls={},
        ports={"JUDGE_PORT": (host, port)},
        host=wanted["here"],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
