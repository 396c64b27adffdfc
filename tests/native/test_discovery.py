"""The gateway asks model servers of other nodes as they come and go.

`watch` checks every five seconds; in `make test` the test itself checks.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from services.stack import packages, template
from services.stack.rundir import RunDir
from services.up.model_servers import EMBEDDING, JUDGE, ModelServer
from services.up.native import stack
from services.up.native.programs import Program
from services.up.native.stack import Runtime
from services.up.native.supervisor import Supervisor
from services.up.native.watch import Discovery
from tests.native.nginx import load
from tests.support import replicas
from tests.support.servers import FaultServer, free_port
from tests.support.waiting import eventually

UPSTREAM = Path(__file__).with_name("model_upstream.py")
BEAT_SECONDS = 0.2
PATHS = {"judge": "/v1/chat/completions", "embedding": "/embed"}

pytestmark = pytest.mark.usefixtures("needs_nginx")


class Replica:
    """A model server on another node, whose heart beats until it is removed."""

    def __init__(self, file: Path, variable: str) -> None:
        self.server, self._file, self._ended = FaultServer(script=UPSTREAM), file, threading.Event()
        self._variable = variable
        self._heart = threading.Thread(target=self._beat)
        self._heart.start()

    def _beat(self) -> None:
        for written in itertools.count():
            replicas.write(self._file, f"http://127.0.0.1:{self.server.port}", written, self._variable)
            if self._ended.wait(BEAT_SECONDS):
                return

    def remove(self) -> None:
        """It is cancelled: its file is gone, and then itself."""
        self._ended.set()
        self._heart.join()
        self._file.unlink(missing_ok=True)
        self.server.kill()


class Scene:
    """A gateway before the replicas of a service that a folder names."""

    def __init__(self, run: RunDir, folder: Path, port: int, ends: ExitStack, service: ModelServer) -> None:
        self.log, self._folder, self._port, self._ends = run.log("watch"), folder, port, ends
        self.path, self._variable = PATHS[service.name], service.url_setting
        self.check: Callable[[], object] = lambda: None

    def add(self, name: str) -> Replica:
        """Start a replica."""
        made = Replica(self._folder / f"{name}.json", self._variable)
        self._ends.callback(made.remove)
        return made

    def ask(self, seconds: float = 60) -> int:
        """Return the port of the replica that answers, or the status where none does; 0 without either."""
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{self.path}", b"{}")
        try:
            with urllib.request.urlopen(request, timeout=seconds) as reply:
                return int(json.load(reply)["port"])
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0

    def eventually(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        eventually(lambda: (self.check(), holds())[1], self.log.read_text)

    def answers(self, *expected: Replica) -> None:
        """Wait until these answer and no other."""
        ports = {replica.server.port for replica in expected}
        self.eventually(lambda: {self.ask() for _ in range(4)} == ports)


NIGHTLY = pytest.mark.nightly


@pytest.fixture(
    params=[
        pytest.param((JUDGE, False), id="judge"),
        pytest.param((JUDGE, True), id="judge by the clock", marks=NIGHTLY),
        pytest.param((EMBEDDING, True), id="embedding by the clock", marks=NIGHTLY),
    ]
)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """A supervised gateway before nobody."""
    service: ModelServer = request.param[0]
    by_the_clock: bool = request.param[1]
    folder, run, port = tmp_path / "replicas", RunDir(str(tmp_path / "run")), free_port()
    folder.mkdir()
    run.make()
    settings = load(
        **{"RULES": "off", service.switch: "off", service.port_setting: port, service.folder_setting: folder}
    )
    made = stack.describe(settings, run, Runtime(packages.find()), [], None)
    upstreams = made.watch.environment["discovery"]
    if not by_the_clock:
        made = replace(made, watch=Program("watch", ["/bin/sleep", "1000"], 40))
    made.secrets.write()
    template.write(made.files(run), run.path)
    supervisor = Supervisor(run)
    with ExitStack() as ends:
        ends.callback(supervisor.stop)
        supervisor.start(dict(os.environ), made.to_state)
        one = Scene(run, folder, port, ends, service)
        if not by_the_clock:
            one.check = Discovery(run, upstreams).check
        yield one


def test_coming_and_going(scene: Scene) -> None:
    """Without a replica the gateway says 502; one that comes is asked, one that is cancelled is not any more."""
    scene.eventually(lambda: scene.ask() == 502)
    first = scene.add("first")
    scene.answers(first)
    second = scene.add("second")
    scene.answers(first, second)
    first.remove()
    scene.answers(second)
    second.remove()
    scene.eventually(lambda: scene.ask() == 502)


def test_old_workers_finish(scene: Scene) -> None:
    """A request that is in flight when the list changes is answered."""
    first = scene.add("first")
    scene.answers(first)
    asked = first.server.stats()[scene.path]
    first.server.set(mode="hold")
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(scene.ask) for _ in range(8)]
        eventually(lambda: first.server.stats()[scene.path] >= asked + 8)
        second = scene.add("second")
        scene.eventually(lambda: scene.ask(5) == second.server.port)
        assert not any(answer.done() for answer in answers)
        first.server.set(mode="ok")
        assert {answer.result() for answer in answers} == {first.server.port}
