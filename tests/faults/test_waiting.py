"""What a client says of time only shortens the server's limits, and what takes long holds up nobody else."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from rewardstack.core.deadline import HEADER
from tests.native.nginx import Gateway, load
from tests.rules.conftest import RewardServer, running
from tests.support.silent_model import SilentModel, silent_model
from tests.support.table import Table
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

KEYS = ("key-of-the-first-client", "key-of-the-second-client")
RULE = {"data_source": "exact_match", "solution_str": "a", "ground_truth": "a"}
THREADS = 2
TEXT = json.dumps(30 * "a" + "!")
OWN = """
import time
from pathlib import Path
from rewardstack_rules import reward_function

@reward_function
def held(response, reference=None):
    Path(response).touch()
    time.sleep(300)
    return 1.0

@reward_function
def sleeps(response, reference=None):
    time.sleep(300)
    return 1.0
"""


def judged(at: int = 0, source: str = "llm_judge_remote", **extra: Any) -> dict[str, Any]:
    """A sample that waits for a model."""
    return {
        "data_source": source,
        "solution_str": f"x{at}",
        "ground_truth": "a",
        "extra_info": {"problem": "p", **extra},
    }


def slow_rule(at: int, source: str, **extra: Any) -> dict[str, Any]:
    """A sample of a rule that takes as long as it may."""
    return {"data_source": source, "solution_str": 30 * "a" + f"!{at}", "ground_truth": "a", "extra_info": extra}


def catastrophe(at: int) -> str:
    """A pattern that takes years."""
    return f"(a|a)*(a|a|b)+{at}$"


def headers(key: str = KEYS[0], **more: str) -> dict[str, str]:
    """Those of a client's request."""
    return {"Content-Type": "application/json", "Authorization": f"Bearer {key}", **more}


class Stack:
    """A reward server, its gateway, and a model that is silent.

    Args:
        server: that scores.
        port: of the gateway, or of the server where there is none.
        model: judge and embedding server.
    """

    def __init__(self, server: RewardServer, port: int, model: SilentModel) -> None:
        self.server, self.port, self.model = server, port, model

    def post(self, path: str, body: Any, key: str = KEYS[0], **more: str) -> requests.Response:
        """The reply to a request."""
        url = f"http://127.0.0.1:{self.port}{path}"
        data = body if isinstance(body, str) else json.dumps(body)
        return requests.post(url, data, headers=headers(key, **more), timeout=120)

    def scores(self, *items: dict[str, Any], key: str = KEYS[0], **more: str) -> list[dict[str, Any]]:
        """The scores of some samples."""
        reply = self.post("/v1/score", {"items": items}, key, **more)
        assert reply.status_code == 200, reply.text
        found: list[dict[str, Any]] = reply.json()["scores"]
        return found

    def send(self, body: bytes, path: str = "/v1/score", key: str = KEYS[0]) -> socket.socket:
        """A connection on which a request was sent that nobody has answered yet."""
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers(key).items()]
        client = socket.create_connection(("127.0.0.1", self.port))
        client.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return client

    def waiting(self) -> int:
        """How many requests wait without a thread, by the server's own count."""
        text = self.server.get("/metrics", headers=headers()).text
        [line] = [line for line in text.splitlines() if line.startswith("rewardstack_waiting_requests ")]
        return int(float(line.split()[1]))

    @contextmanager
    def many(self, bodies: list[dict[str, Any]], path: str = "/v1/score") -> Iterator[list[socket.socket]]:
        """Clients that wait; gone afterwards, and what they waited for dropped."""
        clients = [self.send(json.dumps(body).encode(), path) for body in bodies]
        try:
            eventually(lambda: self.waiting() == len(bodies), lambda: f"{self.waiting()} of {len(bodies)} wait")
            yield clients
        finally:
            for client in clients:
                client.close()
        eventually(lambda: self.waiting() == 0, lambda: f"{self.waiting()} still wait")
        eventually(lambda: self.model.waiting() == 0, lambda: f"{self.model.waiting()} still asked for")


@contextmanager
def stack(
    folder: Path, model: SilentModel, *, gateway: bool = False, processes: int = 2, **variables: Any
) -> Iterator[Stack]:
    """A `Stack` while the block runs."""
    models = {f"{name}_SERVER_URL": model.url for name in ("LLM_JUDGE", "EMBEDDING")}
    with running(
        folder,
        *("--workers", str(processes)),
        REWARD_SERVER_API_KEYS=",".join(KEYS),
        **{"REWARD_THREADS": THREADS, **models, **variables},
    ) as server:
        port = int(server.url.rpartition(":")[2])
        if not gateway:
            yield Stack(server, port, model)
            return
        front = Gateway(folder / "gateway", {"rules": [f"127.0.0.1:{port}"]}, load())
        try:
            yield Stack(server, front.ports["rules"], model)
        finally:
            front.stop()


@pytest.fixture(scope="module")
def patient(needs_nginx: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that waits ten minutes for its model, and five for a rule."""
    folder = tmp_path_factory.mktemp("patient")
    (folder / "own.py").write_text(OWN)
    waits: dict[str, Any] = {"LLM_JUDGE_SERVER_TIMEOUT": 600, "EMBEDDING_SERVER_TIMEOUT": 600, "VERIFY_TIMEOUT": 300}
    own: dict[str, Any] = {"REWARD_FUNCTIONS": folder / "own.py"}
    with silent_model() as model, stack(folder, model, gateway=True, **waits, **own) as one:
        yield one


@pytest.fixture(scope="module")
def brief(needs_nginx: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that waits a second for its model, which trickles."""
    waits = {f"{name}_SERVER_TIMEOUT": 1 for name in ("LLM_JUDGE", "EMBEDDING")}  # expires: it never ends a reply
    folder = tmp_path_factory.mktemp("brief")
    with silent_model(trickles=True) as model, stack(folder, model, gateway=True, **waits) as one:
        yield one


WAITING: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "a judge": ("/v1/score", [{"items": [judged(at, timeout=80_000)]} for at in range(20)]),
    "embeddings": ("/v1/score", [{"items": [judged(at, "embedding_remote")]} for at in range(20)]),
    "batches": ("/v1/score", [{"items": [judged(at, timeout=600 + at) for at in range(50)]} for _ in range(12)]),
    "slime": (
        "/get_reward?reward_type=llm_judge_remote",
        [{"prompt": "p", "response": f"x{at}", "label": "a", "metadata": {"timeout": 80_000}} for at in range(20)],
    ),
    "patterns": (
        "/v1/score",
        [{"items": [slow_rule(at, "regex_format", pattern=catastrophe(at))]} for at in range(70)],
    ),
    "batches of patterns": (
        "/v1/score",
        [{"items": [slow_rule(at, "regex_format", pattern=catastrophe(at))] * 20} for at in range(12)],
    ),
    "schemas": (
        "/v1/score",
        [
            {"items": [{**slow_rule(at, "json_schema", schema={"pattern": catastrophe(at)}), "solution_str": TEXT}]}
            for at in range(20)
        ],
    ),
    "a rule's function": ("/v1/score", [{"items": [slow_rule(at, "rule_remote_sleeps")]} for at in range(20)]),
    "a rule's function, by slime": (
        "/get_reward?reward_type=sleeps",
        [{"prompt": "p", "response": f"x{at}", "label": "a"} for at in range(20)],
    ),
    "explanations of a rule": ("/v1/explain", [slow_rule(at, "rule_remote_sleeps") for at in range(20)]),
    "explanations": ("/v1/explain", [judged(at, timeout=80_000) for at in range(20)]),
}


@pytest.mark.parametrize("name", WAITING)
def test_others_are_answered(patient: Stack, name: str) -> None:
    """While more requests wait than there are threads, another key's rule, `/ready` and a wrong key are answered."""
    path, bodies = WAITING[name]
    assert len(bodies) > 2 * THREADS
    with patient.many(bodies, path) as clients:
        for _ in range(8):
            [score] = patient.scores(RULE, key=KEYS[1])
            assert (score["status"], score["value"]) == ("ok", 1.0)
        ready = patient.server.get("/ready")
        assert (ready.status_code, ready.json()["checks"]["places"]) == (200, True)
        assert patient.post("/v1/score", {"items": [RULE]}, key="a-key-that-nobody-has").status_code == 401
        assert patient.server.get("/v1/status", headers=headers()).status_code == 200

        for client in clients:
            with pytest.raises(BlockingIOError):
                client.recv(1, socket.MSG_DONTWAIT)


REFUSED = ["1e308", "1e9", "86401", "1" + 400 * "0", "-1", "0", "-1e308", "1e-400", '"9"', '"inf"', "true", "[5]"]


def test_a_timeout_that_is_none_is_unscored_by_name(patient: Stack, table: Table) -> None:
    """A timeout that is not finite, not above 0, longer than a day or no number costs its own sample alone."""
    for timeout in REFUSED:
        with table.case(timeout[:20]):
            item = json.dumps(judged()).replace('"problem"', f'"timeout": {timeout}, "problem"')

            reply = patient.post("/v1/score", f'{{"items": [{item}, {json.dumps(RULE)}]}}')

            wrong, right = reply.json()["scores"]
            assert (wrong["status"], wrong["field"]) == ("unscored", "extra_info.timeout")
            assert (right["status"], right["value"]) == ("ok", 1.0)


@pytest.mark.parametrize("source", ["llm_judge_remote", "embedding_remote"])
def test_a_timeout_shortens_and_does_not_lengthen(brief: Stack, source: str) -> None:
    """Samples that ask for more than the server's second have that second, those that ask for less have less."""
    asked = [None, 0.25, 1.0, 3, 80_000, 86_400]
    samples = [judged(at, source, **({} if one is None else {"timeout": one})) for at, one in enumerate(asked)]

    found = brief.scores(*samples, **{HEADER: "1e12"})

    assert {one["status"] for one in found} <= {"failed", "fallback"}
    longest = [one["reason"] for one in found if "within" in one["reason"]]
    assert not [reason for reason in longest if "within 1 s" not in reason and "within 0.25 s" not in reason]


@pytest.mark.parametrize("header", ["inf", "-inf", "nan", "-1", "-5.5", "1e309", "9" * 400, "soon", ""])
def test_a_deadline_that_is_none_is_refused(patient: Stack, header: str) -> None:
    """A deadline header that is no finite number of 0 or more is 400, and names the header."""
    reply = patient.post("/v1/score", {"items": [RULE]}, **{HEADER: header})

    assert (reply.status_code, reply.json()["field"]) == (400, HEADER)


def test_a_long_deadline_is_none(patient: Stack) -> None:
    """A deadline of years does no harm, and one that has come drops the work."""
    for long in ("1e12", "1e308", "86400001"):
        assert patient.scores(RULE, **{HEADER: long})[0]["status"] == "ok"
    assert patient.scores(RULE, **{HEADER: "0"})[0]["status"] == "failed"


def test_roll_refuses_a_timeout_that_is_none(patient: Stack, table: Table) -> None:
    """ROLL's own timeout is held to the same."""
    body = {"prompt": "p", "response": "a", "reward_type": "exact_match", "reward_info": {"ground_truth": "a"}}
    for timeout in REFUSED:
        with table.case(timeout[:20]):
            sent = json.dumps(body).replace('"prompt"', f'"timeout": {timeout}, "prompt"', 1)

            reply = patient.post("/roll/submit", sent)

            assert (reply.status_code, reply.json()["field"]) == (400, "timeout")


@pytest.mark.parametrize("source", ["llm_judge_remote", "rule_remote_sleeps"])
def test_one_key_leaves_places_to_another(tmp_path: Path, source: str) -> None:
    """A key has half of the places of requests that take long; `/ready` says that it finds no more."""
    (tmp_path / "own.py").write_text(OWN)
    waits: dict[str, Any] = {"LLM_JUDGE_SERVER_TIMEOUT": 600, "VERIFY_TIMEOUT": 300, "REWARD_WAITING_REQUESTS": 4}
    own: dict[str, Any] = {"REWARD_FUNCTIONS": tmp_path / "own.py"}
    with silent_model() as model, stack(tmp_path, model, processes=1, **waits, **own) as one:
        body = json.dumps({"items": [judged(source=source)]}).encode()
        clients = [one.send(body) for _ in range(2)]
        eventually(lambda: one.waiting() == 2)
        refused = one.post("/v1/score", {"items": [judged(source=source)]})
        other = one.send(body, key=KEYS[1])
        eventually(lambda: one.waiting() == 3)

        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert "REWARD_WAITING_REQUESTS" in refused.json()["error"]
        ready = one.server.get("/ready")
        assert (ready.status_code, ready.json()["checks"]["places"]) == (200, False)
        assert one.scores(RULE)[0]["status"] == "ok"
        for client in (*clients, other):
            client.close()
        eventually(lambda: one.waiting() == 0)


def test_a_function_ends_with_its_client(tmp_path: Path) -> None:
    """A sample in an isolated process is dropped when its client goes: the next one has the process."""
    (tmp_path / "own.py").write_text(OWN)
    settings: dict[str, Any] = {"REWARD_FUNCTIONS": tmp_path / "own.py", "VERIFY_TIMEOUT": 300, "VERIFY_PROCESSES": 1}
    with silent_model() as model, stack(tmp_path, model, **settings) as one:
        begun = tmp_path / "first", tmp_path / "second"
        for path in begun:
            item = {"data_source": "rule_remote_held", "solution_str": str(path), "ground_truth": "1"}
            client = one.send(json.dumps({"items": [item]}).encode())
            eventually(path.exists)
            client.close()


@pytest.mark.nightly
def test_five_hundred_wait(tmp_path: Path) -> None:
    """While 500 requests wait for a judge that says nothing at all, rules are answered before any of them."""
    waits: dict[str, Any] = {"LLM_JUDGE_SERVER_TIMEOUT": 600, "REWARD_THREADS": 32}
    with silent_model(is_mute=True) as model, stack(tmp_path, model, **waits) as one:
        body = json.dumps({"items": [judged(timeout=80_000)]}).encode()
        clients = [one.send(body) for _ in range(500)]
        eventually(lambda: one.waiting() == 500)

        assert ["ok"] * 21 == [one.scores(RULE, key=KEYS[1])[0]["status"] for _ in range(21)]
        assert one.waiting() == 500
        for client in clients:
            client.close()
        eventually(lambda: one.waiting() == 0)
