"""What is written into supervisord's configuration is what supervisord reads."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from supervisor.options import ServerOptions

from services.judge import engine
from services.judge.engine import Options, Vllm
from services.judge.model import Model
from services.stack.rundir import RunDir
from services.up.native import render
from services.up.native.programs import Program
from tests.native.nginx import load

FOUND = {"nginx": "/usr/sbin/nginx", "redis-server": "/usr/bin/redis-server"}
FLAGS = ["--override-generation-config", '{"top_p": 0.8}', "--note", 'it\'s 100 % "fine"']


def read(folder: Path, programs: list[Program]) -> dict[str, Any]:
    """The programs by name, as supervisord reads them."""
    run = RunDir(str(folder))
    run.make()
    written = render.configuration(load(WORKERS=2), run, FOUND, programs)["supervisord.conf"]
    (folder / "supervisord.conf").write_text(written)
    options = ServerOptions()
    options.realize(["-c", str(folder / "supervisord.conf")])
    return {process.name: process for group in options.process_group_configs for process in group.process_configs}


def test_round_trip(tmp_path: Path) -> None:
    """Quotes, spaces, braces and per cent signs in flags and variables arrive as they were."""
    vllm = Vllm(sys.executable, "0.32.0+cpu", template_defaults=True)
    listen = ["--uds", "/run/judge-2.sock"]
    command = engine.command(vllm, Model("org/m", "m", local=False), listen, Options(further=tuple(FLAGS)))
    own = {"CUDA_VISIBLE_DEVICES": "0,1", "EMPTY": "", "PER_CENT": "100%"}
    made = Program("judge-2", command, 20, server="unix:/run/judge-2.sock", environment=own)
    found = read(tmp_path, [made])
    assert sorted(found) == ["cache", "gateway", "judge-2", "queue", "rules", "worker", "worker-2"]
    launched = [sys.executable, "-m", "services.up.native.launch", "judge-2", *command]
    assert shlex.split(found["judge-2"].command) == launched
    assert found["judge-2"].environment == own


def test_gateway_before_replicas(tmp_path: Path) -> None:
    """The gateway has a server for each service that is started, and each replica in its list."""
    run = RunDir(str(tmp_path))
    run.make()
    replicas = [Program(name, [], 20, server=f"unix:/run/{name}.sock") for name in ("judge", "judge-2")]
    files = render.configuration(load(), run, FOUND, replicas)
    assert "server unix:/run/judge.sock max_fails=3" in files["judge-least_conn.conf"]
    assert "server unix:/run/judge-2.sock max_fails=3" in files["judge-least_conn.conf"]
    assert "include judge.conf;" in files["nginx.conf"]
    assert "embedding" not in "".join(files)
