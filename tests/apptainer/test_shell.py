"""What `stack.sh env` sets in a shell, and what `up` makes of it later."""

from __future__ import annotations

import shlex
import socket
from pathlib import Path

import pytest

from services.stack.rundir import RunDir
from services.up import preflight
from services.up.apptainer import endpoints, shell
from services.up.model_servers import JUDGE, is_external
from services.up.native.supervisor import Supervisor
from tests.native.nginx import load

SERVERS = {
    "REWARD_SERVER_URL": "http://n1:6000",
    "REWARD_SERVER_API_KEY": "it's $HOME; `id`",
    "LLM_JUDGE_SERVER_URL": "http://127.0.0.1:41233",
}


@pytest.fixture
def up(run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A stack that is up, and has published its servers."""
    monkeypatch.setattr(Supervisor, "members", lambda self: [1])
    endpoints.publish(run, tmp_path / "shared.json", {**SERVERS, "X=1; echo injected; Y": "1"})
    return run


def exported(run: RunDir, **environ: str) -> dict[str, str]:
    """The variables that a shell with these ones has after it."""
    lines = [shlex.split(line) for line in shell.exports(run, environ).splitlines()]
    assert all(word == "export" and len(rest) == 1 for word, *rest in lines)
    return dict(rest[0].split("=", 1) for _, *rest in lines)


def test_exports(up: RunDir) -> None:
    """What a shell evaluates sets exactly the values, whatever they hold, and nothing by a name that is none."""
    assert exported(up).keys() == {*SERVERS, "no_proxy", "NO_PROXY", shell.MARK}
    assert {name: exported(up)[name] for name in SERVERS} == SERVERS


@pytest.mark.parametrize(
    ("environ", "lower", "upper"),
    [
        ({}, "n1,127.0.0.1", "n1,127.0.0.1"),
        ({"no_proxy": "hub,n1"}, "hub,n1,127.0.0.1", "hub,n1,127.0.0.1"),
        ({"no_proxy": "a", "NO_PROXY": "B"}, "a,n1,127.0.0.1", "B,n1,127.0.0.1"),
    ],
)
def test_proxies(up: RunDir, environ: dict[str, str], lower: str, upper: str) -> None:
    """No proxy is asked for the stack's hosts, which are added to those of the shell, and once."""
    once = exported(up, **environ)
    assert (once["no_proxy"], once["NO_PROXY"]) == (lower, upper)
    assert exported(up, **once) == once


def test_certificates(up: RunDir, tmp_path: Path) -> None:
    """A stack whose certificate nobody knows says whom to trust; one without leaves the shell's own."""
    assert "SSL_CERT_FILE" not in exported(up)
    endpoints.publish(up, tmp_path / "shared.json", SERVERS, "/shared/own.pem")
    assert exported(up)["SSL_CERT_FILE"] == "/shared/own.pem"


def test_up_in_that_shell(up: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next `up` does not take the stack's own addresses, on whatever ports, for external servers."""
    environ = exported(up)
    given = load(JUDGE="on", **{name: value for name, value in environ.items() if name in SERVERS})
    assert is_external(JUDGE, given)
    made, ignored = shell.drop_own_urls(given, up, environ)
    assert ignored == {"LLM_JUDGE_SERVER_URL": "http://127.0.0.1:41233"}
    assert not is_external(JUDGE, made)
    preflight.require_consistent(made)


def test_other_servers(up: RunDir, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that `env` did not set is an external server; so is one of another stack while that is up."""
    environ = exported(up)
    given = load(LLM_JUDGE_SERVER_URL=SERVERS["LLM_JUDGE_SERVER_URL"])
    other = RunDir(str(tmp_path_factory.mktemp("other")))
    assert shell.drop_own_urls(given, other, environ)[1] == {}
    environ[shell.MARK] = environ[shell.MARK].replace(socket.gethostname(), "n7")
    assert shell.drop_own_urls(given, up, environ)[1] == {}
    environ = exported(up)
    mine = load(LLM_JUDGE_SERVER_URL="http://n9:8000")
    assert shell.drop_own_urls(mine, up, {**environ, "LLM_JUDGE_SERVER_URL": "http://n9:8000"})[1] == {}
    monkeypatch.setattr(Supervisor, "members", lambda self: [])
    assert {*shell.drop_own_urls(given, other, environ)[1]} == {"LLM_JUDGE_SERVER_URL"}


def test_without_a_mark(run: RunDir) -> None:
    """In a shell that no `env` was evaluated in nothing is ignored."""
    given = load(LLM_JUDGE_SERVER_URL="http://n9:8000")
    assert shell.drop_own_urls(given, run, {"LLM_JUDGE_SERVER_URL": "http://n9:8000"}) == (given, {})
