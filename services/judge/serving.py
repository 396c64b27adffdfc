"""Several servers behind one address, or one: started, watched, stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from services.gateway import config as gateway
from services.judge import replicas
from services.judge.engine import Options, Vllm, command, environment
from services.judge.model import Model
from services.judge.replicas import Replica
from services.stack import packages, template
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up.native import health
from services.up.native.health import UnixConnection

WATCH_SECONDS = 1.0
WILDCARDS = ("0.0.0.0", "::", "")


@dataclass(frozen=True)
class Address:
    """Where clients find the judge."""

    host: str
    port: int

    @property
    def here(self) -> str:
        """The host as this machine reaches it."""
        return "127.0.0.1" if self.host in WILDCARDS else self.host


class Serving:
    """The processes of one judge.

    Args:
        run: directory for sockets, logs and the gateway's files.
        address: to listen on.
        settings: of the stack.
        pause: sleeps for that many seconds; raises KeyboardInterrupt to end it all.
    """

    def __init__(self, run: RunDir, address: Address, settings: Settings, pause: Callable[[float], None]) -> None:
        self._run, self._address, self._settings, self._pause = run, address, settings, pause
        self._judges: list[Replica] = []
        self._gateway: list[Replica] = []
        self._loading: set[str] = set()

    def start(self, vllm: Vllm, model: Model, options: Options, shares: Sequence[Sequence[str]]) -> None:
        """Start a replica for each share of GPUs, and nginx before them where there are several.

        Raises:
            StackError: nginx is missing, a replica ends while it loads, or MODEL_UP_TIMEOUT passes.
        """
        for number, share in enumerate(shares, start=1):
            name = "judge" if number == 1 else f"judge-{number}"
            socket = self._run.socket(name) if len(shares) > 1 else None
            listen = ["--uds", str(socket)] if socket else self._listen()
            variables = environment(vllm, model, share, self._settings["VLLM_CPU_KVCACHE_SPACE"])
            started = command(vllm, model, listen, options)
            self._judges.append(Replica(name, started, self._environment(vllm, variables), self._run.log(name), socket))
        if len(shares) > 1:
            self._gateway.append(self._nginx())
        for process in (*self._judges, *self._gateway):
            process.start()
        self._loading = {judge.name for judge in self._judges}
        replicas.wait(self._judges, self._healthy, self._settings.number("MODEL_UP_TIMEOUT"), self._pause)
        self._loading.clear()

    def watch(self) -> None:
        """Start again what ends, until it is interrupted.

        Raises:
            KeyboardInterrupt: of the pause.
            StackError: a replica that was started again ended before it was well.
        """
        while True:
            for process in (*self._judges, *self._gateway):
                if process.ended:
                    replicas.show_end(process)
                    if process.name in self._loading:
                        raise StackError(f"{process.name} ended again while it was starting", "see the lines above")
                    self._loading.add(process.name)
                    say(f"==> {process.name} has ended: starting it again")
                    process.start()
                elif process.name in self._loading and (process in self._gateway or self._healthy(process)):
                    self._loading.remove(process.name)
                    say(f"==> {process.name} is well again")
            self._pause(WATCH_SECONDS)

    def stop(self) -> None:
        """Stop them all."""
        patience = replicas.ABANDON_SECONDS if self._loading else replicas.STOP_SECONDS
        replicas.stop([*self._gateway, *self._judges], patience)

    def _listen(self) -> list[str]:
        return ["--host", self._address.host, "--port", str(self._address.port)]

    def _healthy(self, replica: Replica) -> bool:
        if replica.socket:
            return not health.get(UnixConnection(replica.socket), "/health")
        connection = HTTPConnection(self._address.here, self._address.port, timeout=health.PATIENCE)
        return not health.get(connection, "/health")

    def _environment(self, vllm: Vllm, own: dict[str, str]) -> dict[str, str]:
        beside = str(Path(vllm.python).parent)
        given = {**os.environ, **own, "PATH": os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])}
        if key := self._settings["LLM_JUDGE_SERVER_API_KEY"]:
            given["VLLM_API_KEY"] = key
        return given

    def _nginx(self) -> Replica:
        program = packages.find().get("nginx")
        if program is None:
            raise StackError("several replicas need nginx before them, which is not installed", "apt-get install nginx")
        servers = {"judge": [f"unix:{judge.socket}" for judge in self._judges]}
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        files = gateway.files(servers, self._settings, {"judge": f"{host}:{self._address.port}"})
        template.write(files, self._run.path)
        return Replica("gateway", gateway.command(program, self._run.path), dict(os.environ), self._run.log("gateway"))
