"""nginx from the shipped templates, for tests."""

from __future__ import annotations

import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from services.gateway import config as gateway
from services.stack import packages, settings, template
from services.stack.rundir import ROOT, RunDir
from tests.support.servers import free_port, wait_for_port

STOP_SECONDS = 30.0


class Gateway:
    """A gateway with a port for each service, and for the status page where there is a reward server.

    Args:
        folder: its prefix.
        servers: addresses of those behind it, by service.
        configured: settings that the templates are filled in with.
        paths: the service behind each path at the judge's port, but for the default judge's own.
    """

    def __init__(
        self,
        folder: Path,
        servers: Mapping[str, Sequence[str]],
        configured: settings.Settings,
        paths: Mapping[str, str] = gateway.NO_PATHS,
    ) -> None:
        run = RunDir(str(folder))
        run.make()
        # Other models have no ports of their own.
        services = [service for service in servers if service not in paths.values() or service == "judge"]
        self.ports = {name: free_port() for name in (*services, *(["page"] if "rules" in services else []))}
        listen = {service: f"127.0.0.1:{port}" for service, port in self.ports.items()}
        template.write(gateway.files(servers, configured, listen, paths=paths), folder)
        self.log = folder / "gateway.log"
        # nginx opens its standard output again for the access log: messages that are not appended would overwrite it.
        with self.log.open("ab") as log:
            command = gateway.command(packages.find()["nginx"], folder)
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        for port in self.ports.values():
            wait_for_port(port)

    def ask(
        self, path: str, body: bytes | None = None, service: str = "", headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """Status and body of the answer; a body makes it a POST."""
        port = self.ports[service or next(iter(self.ports))]
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def stop(self) -> str:
        """Stop it once each request has its line in the log; returns all that it logged."""
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
        return self.log.read_text()


def load(**values: object) -> settings.Settings:
    """The shipped settings, and what a test changes."""
    return settings.load(ROOT, {name: str(value) for name, value in values.items()})
