"""Servers named in a file move while samples are in flight: none is lost, and no key is sent to another server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, endpoints, llm_judge_remote, score
from rewardstack.endpoints import VARIABLE
from rewardstack.errors import SettingsError
from rewardstack.transport import timing
from tests.client.conftest import Script
from tests.client.embedding.conftest import STAND_IN
from tests.client.judge.conftest import FAKE_JUDGE
from tests.rules.conftest import RewardServer, running
from tests.support.clock import LIMIT, Clock, known
from tests.support.endpoints import write_endpoints
from tests.support.servers import FAULT_SERVER, FaultServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

SAMPLES = 512
NAMED = '[judges.small]\nmodel = "small"\n'
KINDS = {
    "math": ("REWARD_SERVER", FAULT_SERVER, "requests"),
    "llm_judge_remote": ("LLM_JUDGE_SERVER", FAKE_JUDGE, "max_concurrent"),
    "small": ("LLM_JUDGE_SERVER", FAKE_JUDGE, "max_concurrent"),
    "embedding_remote": ("EMBEDDING_SERVER", STAND_IN, "requests"),
}
"""Of a source: whose variables its servers have, a server of that kind, and what it counts its work as."""
Serve = Callable[[Path], FaultServer]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file is to be, which `REWARDSTACK_ENDPOINTS` names; a slow answer causes no hedge."""
    monkeypatch.setattr(timing, "MIN_STUCK", 60.0)
    monkeypatch.setenv("REWARD_CACHE", "off")
    monkeypatch.setenv(VARIABLE, str(path := tmp_path / "endpoints.json"))
    return path


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers, which are gone afterwards."""
    with ExitStack() as started:

        def start(script: Path) -> FaultServer:
            server = FaultServer(script=script)
            started.callback(server.kill)
            return server

        yield start


def samples(source: str, count: int = SAMPLES, **extra: Any) -> list[Request]:
    """As many samples, all of them different."""
    return [Request(source, f"{source} {at}", "1", {"problem": "?", **extra}) for at in range(count)]


@contextmanager
def scoring(requests: list[Request]) -> Iterator[list[Score]]:
    """Scores in a thread, which has ended in the end; the scores are in the list then."""
    found: list[Score] = []
    thread = threading.Thread(target=lambda: found.extend(score(requests, on_error="none")))
    thread.start()
    yield found
    thread.join()


def statuses(scores: list[Score]) -> set[str]:
    """The different statuses, with the reasons of those that are not ok."""
    return {one.status if one.status == "ok" else f"{one.status}: {one.reason}" for one in scores}


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("end", [FaultServer.kill, FaultServer.freeze], ids=["killed", "hangs"])
def test_moves_in_mid_run(
    file: Path,
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    end: Callable[[FaultServer], None],
) -> None:
    """A server is replaced while slow samples are in flight and more wait for a slot: all are ok."""
    monkeypatch.setattr(timing, "PROBE_AFTER", 0.5)
    monkeypatch.setattr(timing, "HEALTH_TIMEOUT", 1.0)  # expires where the old one hangs; the new one is asked again
    (tmp_path / "routes.toml").write_text(NAMED)
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(tmp_path / "routes.toml"))
    monkeypatch.setenv("REWARDSTACK_MAX_CONNECTIONS", "4")
    name, script, work = KINDS[source]
    old, new = serve(script), serve(script)
    old.set(delay=1.0)
    write_endpoints(file, {f"{name}_URL": old.url, f"{name}_API_KEY": "old"})
    with scoring(samples(source)) as scores:
        eventually(lambda: old.stats().get(work, 0) >= 4)
        end(old)
        write_endpoints(file, {f"{name}_URL": new.url, f"{name}_API_KEY": "new"})
    assert len(scores) == SAMPLES and statuses(scores) == {"ok"}
    keys = {body["headers"]["Authorization"] for body in new.stats().get("bodies", ())}
    assert keys == ({"Bearer new"} if script == FAKE_JUDGE else set())


def test_full_timeout_at_the_new_server(
    file: Path, serve: Serve, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample that spent most of its timeout on the old server has the full timeout at the new one."""
    monkeypatch.setattr(timing, "MIN_STUCK", 3600.0)
    monkeypatch.setattr(timing, "PROBE_AFTER", 3600.0)
    old, new = serve(FAULT_SERVER), serve(FAULT_SERVER)
    write_endpoints(file, {"REWARD_SERVER_URL": old.url})
    assert statuses(score(samples("math", 1))) == {"ok"}
    old.kill()
    new.set(mode="hold")
    with scoring(samples("math", timeout=90)) as scores:
        eventually(lambda: "connection refused" in known())
        clock.forward(60)
        write_endpoints(file, {"REWARD_SERVER_URL": new.url})
        eventually(lambda: new.stats()["requests"] == SAMPLES / 64)
        clock.forward(60)
        new.set(mode="ok")
    assert statuses(scores) == {"ok"}


@pytest.mark.parametrize("source", ["math", "llm_judge_remote"])
def test_the_old_server_keeps_running(file: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """What has not been sent yet goes to the new server, also while the old one is at work on what it was sent."""
    monkeypatch.setenv("REWARDSTACK_MAX_CONNECTIONS", "1")
    name, script, work = KINDS[source]
    old, new = serve(script), serve(script)
    write_endpoints(file, {f"{name}_URL": old.url})
    assert statuses(score(samples(source, 1))) == {"ok"}
    old.set(delay=1.0 if source == "llm_judge_remote" else 600.0)
    with scoring(samples(source, 128)) as scores:
        eventually(lambda: old.stats().get(work, 0) > 0)
        write_endpoints(file, {f"{name}_URL": new.url})
        eventually(lambda: new.stats().get(work, 0) > 0)
        old.kill()
    assert statuses(scores) == {"ok"}


def test_one_of_several_leaves(file: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """When one of several busy servers is replaced by another, it still answers the requests in flight there."""
    monkeypatch.setattr(endpoints, "CHECK_INTERVAL", 0.1)
    first, second, third = (serve(FAULT_SERVER) for _ in range(3))
    for one in (first, second):
        one.set(delay=1.0)
    write_endpoints(file, {"REWARD_SERVER_URL": f"{first.url},{second.url}"})
    with scoring(samples("math", 10 * 64)) as scores:
        eventually(lambda: first.stats()["requests"] and second.stats()["requests"])
        write_endpoints(file, {"REWARD_SERVER_URL": f"{second.url},{third.url}"})
    assert statuses(scores) == {"ok"}
    assert sum(one.stats()["scored"] for one in (first, second, third)) == 10 * 64
    asked = first.stats()["requests"]
    assert statuses(score(samples("math", 64))) == {"ok"}
    assert first.stats()["requests"] == asked


def test_named_no_more(file: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a server that the file does not name any more is scored there while it lives."""
    monkeypatch.setattr(endpoints, "CHECK_INTERVAL", 0.1)
    monkeypatch.setenv("REWARDSTACK_MAX_CONNECTIONS", "1")
    server = serve(FAULT_SERVER)
    server.set(delay=0.6)
    write_endpoints(file, {"REWARD_SERVER_URL": server.url})
    with scoring(samples("math", 3 * 64)) as scores:
        eventually(lambda: server.stats()["requests"])
        write_endpoints(file)
    assert statuses(scores) == {"ok"}
    with pytest.raises(SettingsError, match="REWARD_SERVER_URL is not set"):
        score(samples("math"))


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A real reward server that has the next job's key."""
    with running(
        tmp_path_factory.mktemp("keyed"), "--workers", "1", REWARD_SERVER_API_KEYS="key-of-the-next-job"
    ) as one:
        yield one


def test_the_next_jobs_key(file: Path, keyed: RewardServer, clock: Clock) -> None:
    """A server that takes another key than the file has yet, as the next job's at the same address, is waited for."""
    write_endpoints(file, {"REWARD_SERVER_URL": keyed.url, "REWARD_SERVER_API_KEY": "of-the-last-job"})
    with scoring([Request("gsm8k", f"#### {at}", f"{at}") for at in range(SAMPLES)]) as scores:
        eventually(lambda: "does not accept the key" in known())
        write_endpoints(file, {"REWARD_SERVER_URL": keyed.url, "REWARD_SERVER_API_KEY": "key-of-the-next-job"})
    assert statuses(scores) == {"ok"} and {one.value for one in scores} == {1.0}


def test_a_key_that_is_wrong_for_good(file: Path, keyed: RewardServer, clock: Clock) -> None:
    """Where the file's key stays one that the server does not take, the reason says so, without the key."""
    write_endpoints(file, {"REWARD_SERVER_URL": keyed.url, "REWARD_SERVER_API_KEY": "hush"})
    [found] = clock.expire(
        lambda: score([Request("gsm8k", "#### 1", "1", {"timeout": LIMIT})], on_error="none"),
        lambda: "does not accept the key" in known(),
    )
    assert found.status == "failed" and "hush" not in found.reason
    assert "401" in found.reason and f"the server does not accept the key in {VARIABLE}" in found.reason


@pytest.mark.parametrize("own", [True, False])
def test_keys_go_to_the_files_servers(file: Path, serve: Serve, own: bool) -> None:
    """The file's key goes to an address of a sample's own where that is one of the file's now, else not."""
    old, new = serve(FAULT_SERVER), serve(FAULT_SERVER)
    write_endpoints(file, {"REWARD_SERVER_URL": old.url, "REWARD_SERVER_API_KEY": "key"})
    assert statuses(score(samples("math", 1))) == {"ok"}
    write_endpoints(file, {"REWARD_SERVER_URL": new.url, "REWARD_SERVER_API_KEY": "key"})
    eventually(lambda: score(samples("math", 1, server_url=new.url)) and new.stats()["authorized"])
    asked = new if own else old
    before = asked.stats()
    score(samples("math", 1, server_url=asked.url))
    after = asked.stats()
    assert (after["requests"] - before["requests"], after["authorized"] - before["authorized"]) == (1, int(own))


def test_a_file_loaded_by_a_trainer(file: Path, serve: Serve) -> None:
    """The modules that trainers load by path read the file, too."""
    judge = serve(FAKE_JUDGE)
    write_endpoints(file, {"LLM_JUDGE_SERVER_URL": judge.url})
    assert llm_judge_remote.compute_score("any", "42", "42", {"problem": "6 * 7?"}, details=True)["ok"] == 1.0


FORK = """
    import os, sys, time
    from pathlib import Path
    from rewardstack import Request, score
    from tests.support.endpoints import write_endpoints

    def scored(name):
        scores = score([Request("math", f"{{name}} {{at}}") for at in range(20)])
        assert {{one.status for one in scores}} == {{"ok"}}, scores

    scored("before")
    child = os.fork()
    if child:
        write_endpoints(Path({file!r}), {{"REWARD_SERVER_URL": {new!r}}})
    while {new!r} not in Path({file!r}).read_text():
        time.sleep(0.01)
    time.sleep(1.5)  # the file is looked at once a second
    scored("child" if child == 0 else "parent")
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print("done")
"""


def test_fork(file: Path, serve: Serve, run_script: Script) -> None:
    """Parent and child each follow the file."""
    old, new = serve(FAULT_SERVER), serve(FAULT_SERVER)
    write_endpoints(file, {"REWARD_SERVER_URL": old.url})
    assert "done" == run_script(FORK.format(file=str(file), new=new.url))
    assert (old.stats()["items"], new.stats()["items"]) == (20, 40)
