"""The file that says where a stack is."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest

from services.stack.errors import StackError
from services.stack.rundir import RunDir, Running, boot_id
from services.up.apptainer import endpoints, shell
from services.up.native import commands
from services.up.native.supervisor import Supervisor
from tests.support.snippets import block

SERVERS = {"REWARD_SERVER_URL": "http://n1:6000", "REWARD_SERVER_API_KEY": "it's $HOME; `id`"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where it is published."""
    return tmp_path / "shared.json"


def test_page(run: RunDir, file: Path) -> None:
    """The file has the format that docs/hpc.md shows, and is its owner's alone."""
    before = time.time()
    endpoints.publish(run, file, SERVERS)
    after = time.time()
    shown, told = json.loads(block("docs/hpc.md", "json", "{")), json.loads(file.read_text())
    assert told.keys() == shown.keys() and told["version"] == shown["version"]
    assert told["servers"] == SERVERS and before <= told["written"] <= after
    assert file.stat().st_mode & 0o777 == 0o600


def test_heartbeat(run: RunDir, file: Path) -> None:
    """Each beat is a new file under the same name, never one that is half written; without a stack there is none."""
    endpoints.renew(run)
    assert not file.exists()
    endpoints.publish(run, file, SERVERS)
    first = json.loads(file.read_text())["written"]
    with file.open() as opened:
        endpoints.renew(run)
        assert json.loads(file.read_text())["written"] > first == json.loads(opened.read())["written"]
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_down(run: RunDir, file: Path) -> None:
    """`down` removes it, also where nothing runs any more; nothing beats after it."""
    endpoints.publish(run, file, SERVERS)
    commands.down(run)
    endpoints.renew(run)
    assert not file.exists() and not run.published.exists()


def test_moved(run: RunDir, file: Path) -> None:
    """Published under another name, the earlier file is gone."""
    endpoints.publish(run, file, SERVERS)
    endpoints.publish(run, file.with_name("other.json"), SERVERS)
    assert not file.exists() and file.with_name("other.json").exists()


def test_nothing_runs(run: RunDir, file: Path) -> None:
    """Of a stack whose processes are gone nobody is told, for its port may be another user's by now."""
    endpoints.publish(run, file, SERVERS)
    run.save(Running(os.getpid(), boot=boot_id(), gateway="", host="", ports={}, services=[], backend="apptainer"))
    with pytest.raises(StackError, match="no stack is up"):
        shell.exports(run)


def test_another_stack(run: RunDir, file: Path) -> None:
    """A file that another stack has written since stays when this one goes."""
    endpoints.publish(run, file, SERVERS)
    file.write_text(json.dumps({"version": 1, "written": 1.0, "servers": {"REWARD_SERVER_URL": "http://other:6000"}}))
    commands.down(run)
    assert file.exists() and not run.published.exists()


def test_port_of_an_unrelated_process(run: RunDir, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process has the gateway's port there is no file and no shell gets a key; then both are back."""
    monkeypatch.setattr(Supervisor, "members", lambda self: [1])
    with socket.create_server(("127.0.0.1", 0)) as server:
        ports = {"REWARD_PORT": server.getsockname()[1]}
        here = Running(os.getsid(0), boot_id(), "", "127.0.0.1", ports=ports, services=["gateway"], backend="apptainer")
        run.save(here)
        with pytest.raises(StackError, match="is taken by"):
            endpoints.publish(run, file, SERVERS)
        assert not file.exists()
        run.group_file("gateway").write_text(str(os.getpgrp()))
        endpoints.publish(run, file, SERVERS)
        run.group_file("gateway").unlink()
        assert f"port {ports['REWARD_PORT']} is taken by" in endpoints.renew(run)
        assert not file.exists()
        with pytest.raises(StackError, match="another port"):
            shell.exports(run)
        run.group_file("gateway").write_text(str(os.getpgrp()))
        assert endpoints.renew(run) == ""
        assert file.exists() and SERVERS["REWARD_SERVER_URL"] in shell.exports(run)
