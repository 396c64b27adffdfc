"""The gateway follows model servers of other nodes as they come and go."""

from __future__ import annotations

import itertools
import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from services.stack import packages, template
from services.stack.rundir import RunDir
from services.up.model_servers import EMBEDDING, JUDGE, ModelServer
from services.up.native import stack
from services.up.native.stack import Place
from services.up.native.supervision import Supervision
from tests.native.nginx import load
from tests.support import replicas
from tests.support.servers import FaultServer, free_port
from tests.support.waiting import eventually

UPSTREAM = Path(__file__).with_name("model_upstream.py")
BEAT_SECONDS = 1.0
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
    """A gateway that follows a folder of the replicas of a service."""

    def __init__(self, run: RunDir, folder: Path, port: int, ends: ExitStack, service: ModelServer) -> None:
        self.log, self._folder, self._port, self._ends = run.log("supervisord-following"), folder, port, ends
        self.path, self._variable = PATHS[service.name], service.url

    def add(self, name: str) -> Replica:
        """Start a replica."""
        made = Replica(self._folder / f"{name}.json", self._variable)
        self._ends.callback(made.remove)
        return made

    def ask(self) -> int:
        """The port of the replica that answers, or the status where none does."""
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{self.path}", b"{}")
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return int(json.load(reply)["port"])
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def answers(self, *expected: Replica) -> None:
        """Wait until these answer and no other."""
        ports = {replica.server.port for replica in expected}
        eventually(lambda: {self.ask() for _ in range(4)} == ports, self.log.read_text)


@pytest.fixture(params=[JUDGE, EMBEDDING], ids=[*PATHS])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """A supervised gateway before nobody."""
    service: ModelServer = request.param
    folder, run, port = tmp_path / "replicas", RunDir(str(tmp_path / "run")), free_port()
    folder.mkdir()
    run.make()
    settings = load(**{"RULES": "off", service.switch: "off", service.port: port, service.folder: folder})
    made = stack.describe(settings, run, Place(packages.find()), [], None)
    made.secrets.write()
    template.write(made.files(run), run.path)
    supervision = Supervision(run)
    with ExitStack() as ends:
        ends.callback(supervision.stop)
        supervision.start(dict(os.environ), made.running)
        yield Scene(run, folder, port, ends, service)


def test_coming_and_going(scene: Scene) -> None:
    """Without a replica the gateway says 502; one that comes is asked, one that is cancelled is not any more."""
    eventually(lambda: _status(scene) == 502)
    first = scene.add("first")
    scene.answers(first)
    second = scene.add("second")
    scene.answers(first, second)
    first.remove()
    scene.answers(second)
    second.remove()
    eventually(lambda: scene.log.read_text().endswith("replicas: nobody\n"))
    assert scene.ask() == 502


def test_old_workers_finish(scene: Scene) -> None:
    """A request that is under way when the list changes is answered."""
    first = scene.add("first")
    eventually(lambda: _status(scene) not in (0, 502))
    first.server.set(delay=20.0)
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(scene.ask) for _ in range(8)]
        eventually(lambda: first.server.stats().get(scene.path, 0) >= 8)
        second = scene.add("second")
        eventually(lambda: str(second.server.port) in scene.log.read_text())
        assert not any(answer.done() for answer in answers)
        assert {answer.result() for answer in answers} == {first.server.port}


def _status(scene: Scene) -> int:
    """As `ask`, 0 where nobody listens yet."""
    try:
        return scene.ask()
    except urllib.error.URLError:
        return 0
