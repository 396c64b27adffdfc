"""The gateway before judges and an embedding server: paths, keys, balancing, and replicas that break."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from services.gateway.config import NO_PATHS
from services.up.model_servers import REWARD_MODEL_PATH
from tests.native.nginx import Gateway, load
from tests.support.servers import FaultServer, wait_for_port
from tests.support.waiting import eventually

UPSTREAM = Path(__file__).with_name("model_upstream.py")
HANG_SECONDS = 5
"""After which the gateway gives up a judge that hangs; the others answer long before."""
CHAT = "/v1/chat/completions"
EMBED = "/embed"
LISTED = {
    "judge": ["/v1/models", CHAT, "/v1/completions", "/tokenize", "/version", "/health", "/metrics"],
    "embedding": [EMBED, "/similarity", "/tokenize", "/v1/embeddings", "/info", "/health", "/metrics"],
}
UNLISTED = {
    "judge": [
        "/",
        "/invocations",
        "/score",
        "/generative_scoring",
        "/pooling",
        "/v1/embeddings",
        "/v1/chat/completions/batch",
        "/v1/load_lora_adapter",
        "/detokenize",
        "/docs",
        "/ping",
        "/key",
        "//key",
        "/_stats",
    ],
    "embedding": ["/", "/docs", "/rerank", "/predict", "/embed_all", "/embed_sparse", "/decode", "/ping", "/_stats"],
}
JUDGES = {"/judges/small": "judge.small", "/judges/exact": "judge"}
"""A judge with servers of its own, and one that is the default judge."""
PATHS = {
    "judge": "the judge: /v1/models, /v1/chat/completions, /v1/completions, /health; docs/judge.md",
    "embedding": "the embedding server: /embed, /similarity, /tokenize, /v1/embeddings, /info, /health; "
    "docs/embedding.md",
}
"""What the gateway says is served on a port."""

pytestmark = pytest.mark.usefixtures("needs_nginx")


def no_such_path(path: str, service: str = "judge") -> str:
    """What the gateway answers to a path that it does not know."""
    named = path.replace("//", "/")
    return f'{{"error": "no such path {named} at the gateway; here it leads to {PATHS[service]}"}}\n'


class Scene:
    """A gateway before three judges and an embedding server."""

    def __init__(self, gateway: Gateway, judges: list[FaultServer], embedding: FaultServer) -> None:
        self.gateway, self.judges, self.embedding = gateway, judges, embedding

    def chat(self, **headers: str) -> int:
        """Status of the answer to a chat."""
        return self.gateway.ask(CHAT, b"{}", "judge", {name.replace("_", "-"): v for name, v in headers.items()})[0]

    def asked(self, path: str = CHAT) -> list[int]:
        """How often each judge was asked for a path."""
        return [judge.stats().get(path, 0) for judge in self.judges]


def by_default(addresses: list[str]) -> dict[str, list[str]]:
    """Three judges of one name and an embedding server."""
    return {"judge": addresses[:3], "embedding": addresses[3:]}


def named(addresses: list[str]) -> dict[str, list[str]]:
    """The default judge, two replicas of the judge `small`, and an embedding server."""
    return {"judge": addresses[:1], "judge.small": addresses[1:3], "embedding": addresses[3:]}


def with_reward_model(addresses: list[str]) -> dict[str, list[str]]:
    """The default judge, the reward model and an embedding server."""
    return {"judge": addresses[:1], "reward-model": addresses[1:2], "embedding": addresses[3:]}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """Starts a scene with settings of the test's; gone after it."""
    with ExitStack() as stack:

        def start(
            divide: Callable[[list[str]], dict[str, list[str]]] = by_default,
            paths: Mapping[str, str] = NO_PATHS,
            **values: object,
        ) -> Scene:
            with ThreadPoolExecutor(4) as pool:
                servers = list(pool.map(lambda _: FaultServer(script=UPSTREAM), range(4)))
            for server in servers:
                stack.callback(server.kill)
            configured = load(**values)
            addresses = [f"127.0.0.1:{server.port}" for server in servers]
            started = Gateway(tmp_path, divide(addresses), configured, paths)
            stack.callback(started.stop)
            return Scene(started, servers[:3], servers[3])

        yield start


@pytest.mark.parametrize("service", ["judge", "embedding"])
def test_paths(scene: Callable[..., Scene], service: str) -> None:
    """A listed path reaches its service and no other; an unlisted one reaches none."""
    started = scene().gateway
    for path in LISTED[service]:
        status, body = started.ask(path, service=service)
        assert (status, json.loads(body)["path"]) == (200, path)
    for path in UNLISTED[service]:
        assert started.ask(path, b"{}", service) == (404, no_such_path(path, service))


def test_own_paths(scene: Callable[..., Scene]) -> None:
    """Each service's port has the gateway's own health and counts, whatever becomes of the servers."""
    started = scene()
    for judge in started.judges:
        judge.kill()
    for service in LISTED:
        assert started.gateway.ask("/gateway/health", service=service) == (200, '{"status": "ok"}\n')
        assert "Active connections" in started.gateway.ask("/gateway/status", service=service)[1]
    status, body = started.gateway.ask("/v1/models", service="judge")
    assert (status, json.loads(body)) == (502, {"error": "the judge does not answer the gateway; try again"})


def test_key(scene: Callable[..., Scene]) -> None:
    """Paths that vLLM leaves open beside its key are open only to those who have it; /health is open to all."""
    started = scene()
    for judge in started.judges:
        judge.set(key="Bearer right")
    for path in ("/tokenize", "/version", "/metrics", CHAT):
        statuses = [
            started.gateway.ask(path, b'{"prompt": "x"}', "judge", headers)[0]
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer right"})
        ]
        assert statuses == [401, 401, 200]
    assert sum(started.asked("/tokenize")) == 1
    assert started.gateway.ask("/health", service="judge")[0] == 200
    refusal = json.loads(started.gateway.ask("/tokenize", b"{}", "judge")[1])
    assert ("an API key is needed" in refusal["error"], refusal["field"]) == (True, "Authorization")


def test_key_of_the_embedding_server(scene: Callable[..., Scene]) -> None:
    """The metrics that TEI leaves open beside its key are open only to those who have it; /health is open to all."""
    started = scene()
    started.embedding.set(key="Bearer right")
    headers: list[dict[str, str]] = [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer right"}]
    assert [started.gateway.ask("/metrics", None, "embedding", one)[0] for one in headers] == [401, 401, 200]
    assert started.gateway.ask("/health", service="embedding")[0] == 200


def test_least_connections(scene: Callable[..., Scene]) -> None:
    """While a judge has a request, the next ones go to judges that have none."""
    started = scene()
    started.judges[0].set(mode="hold")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(started.chat)
        while not started.asked()[0]:
            asked = asked if not asked.done() else pool.submit(started.chat)
        assert [started.chat() for _ in range(10)] == [200] * 10
        assert started.asked()[0] == 1
        started.judges[0].set(mode="ok")
        assert asked.result() == 200


def test_affinity(scene: Callable[..., Scene]) -> None:
    """With JUDGE_BALANCING=affinity the same header goes to the same judge, and requests without one are spread."""
    started = scene(JUDGE_BALANCING="affinity")
    for problem in range(12):
        before = started.asked()
        assert [started.chat(X_Prompt_Affinity=f"problem {problem}") for _ in range(4)] == [200] * 4
        assert sorted(now - then for now, then in zip(started.asked(), before, strict=True)) == [0, 0, 4]
    before = started.asked()
    assert sum(map(bool, before)) > 1
    assert [started.chat() for _ in range(40)] == [200] * 40
    assert all(now > then for now, then in zip(started.asked(), before, strict=True))


def test_affinity_is_bounded(scene: Callable[..., Scene]) -> None:
    """Past JUDGE_MAX_CONNS the next judge takes what the chosen one has no room for."""
    started = scene(JUDGE_BALANCING="affinity", JUDGE_MAX_CONNS=2)
    for judge in started.judges:
        judge.set(mode="hold")
    with ThreadPoolExecutor(6) as pool:
        statuses = pool.map(lambda _: started.chat(X_Prompt_Affinity="one"), range(6))
        eventually(lambda: sum(started.asked()) == 6)
        for judge in started.judges:
            judge.set(mode="ok")
        assert list(statuses) == [200] * 6
    assert started.asked() == [2, 2, 2]


@pytest.mark.parametrize("balancing", ["least_conn", "affinity"])
@pytest.mark.parametrize("mode", ["drop", "hang", "gone", "502"])
def test_broken_replica(scene: Callable[..., Scene], mode: str, balancing: str) -> None:
    """A judge that breaks, hangs, is gone, or gone behind a gateway of its own, costs a second try, not the sample."""
    started = scene(JUDGE_BALANCING=balancing, **({"JUDGE_TIMEOUT": HANG_SECONDS} if mode == "hang" else {}))
    if mode == "gone":
        started.judges[0].kill()
    else:
        started.judges[0].set(mode=mode)
    with ThreadPoolExecutor(9) as pool:
        asked = pool.map(lambda number: started.chat(X_Prompt_Affinity=str(number)), range(9))
        assert [*asked] == [200] * 9


def test_frozen_replica(scene: Callable[..., Scene]) -> None:
    """So does one that is frozen: it still accepts connections."""
    started = scene(JUDGE_TIMEOUT=HANG_SECONDS)
    started.judges[0].freeze()
    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(lambda _: started.chat(), range(6))] == [200] * 6
    started.judges[0].thaw()


@pytest.mark.parametrize(("status", "tries"), [(429, 2), (503, 2), (500, 2), (404, 2), (400, 1)])
def test_refusals_are_passed_on(scene: Callable[..., Scene], status: int, tries: int) -> None:
    """A request that a judge refuses is tried on another; where all refuse, the client hears it, and all stay in."""
    started = scene()
    for judge in started.judges:
        judge.set(mode=str(status))
    assert [started.chat() for _ in range(12)] == [status] * 12
    assert sum(started.asked()) == 12 * tries


def test_one_failure_ejects_nobody(scene: Callable[..., Scene]) -> None:
    """A judge that broke once is asked again at once; after ten failures it is left alone for a while."""
    started = scene()
    started.judges[0].set(mode="drop")
    assert [started.chat() for _ in range(30)] == [200] * 30
    assert 2 <= started.asked()[0] <= 13


def test_replica_comes_back(scene: Callable[..., Scene]) -> None:
    """A judge that was gone and is back is asked again without a restart of the gateway."""
    started = scene()
    gone = started.judges[0]
    gone.kill()
    assert [started.chat() for _ in range(12)] == [200] * 12
    started.judges[0] = back = FaultServer(gone.port, UPSTREAM)
    wait_for_port(back.port)
    try:
        eventually(lambda: started.chat() != 200 or started.asked()[0])
        assert started.chat() == 200
    finally:
        back.kill()


def test_log(scene: Callable[..., Scene]) -> None:
    """The log of a chat holds the replica and its times, and no key."""
    started = scene()
    started.chat(Authorization="Bearer secret-key")
    logged = started.gateway.stop()
    assert f"port={started.gateway.ports['judge']} POST {CHAT} 200 " in logged
    assert re.search(r" upstream=127\.0\.0\.1:\d+ .*answer=\d+\.\d", logged)
    assert "secret" not in logged


def test_named_judges(scene: Callable[..., Scene]) -> None:
    """Below /judges/NAME each path of a judge leads to that judge's servers, and to the default one's where they share.

    No other path and no other name leads anywhere, however it is written.
    """
    started = scene(named, JUDGES)
    for path in (*LISTED["judge"], "/v1/models?limit=1"):
        before = started.asked(path.partition("?")[0])
        status, body = started.gateway.ask(f"/judges/small{path}", service="judge")
        assert (status, json.loads(body)["path"]) == (200, path.partition("?")[0])
        assert started.gateway.ask(f"/judges/exact{path}", service="judge")[0] == 200
        default, *small = [now - then for now, then in zip(started.asked(path.partition("?")[0]), before, strict=True)]
        assert (path, default, sum(small)) == (path, 1, 1)
    for path in (*UNLISTED["judge"], "/gateway/health", "/gateway/status", "/judges/small/v1/models"):
        below = f"/judges/small{path}"
        assert started.gateway.ask(below, b"{}", "judge") == (404, no_such_path(below))
    for name in ("other", "default", "judge", "Small", "", "small/..", "judge.small"):
        assert (name, started.gateway.ask(f"/judges/{name}/v1/models", service="judge")[0]) == (name, 404)
    assert "REWARDSTACK_ROUTES" in started.gateway.ask("/judges/other/v1/models", service="judge")[1]


def test_reward_model(scene: Callable[..., Scene]) -> None:
    """Below its path the reward model has a pooling server's paths and no others, with the key of the port."""
    started = scene(with_reward_model, {REWARD_MODEL_PATH: "reward-model"}, LLM_JUDGE_SERVER_API_KEY="right-key")
    right = {"Authorization": "Bearer right-key"}
    for server in started.judges:
        server.set(key="Bearer right-key")
    for path in ("/classify", "/pooling", "/tokenize", "/v1/models", "/version"):
        status, body = started.gateway.ask(f"{REWARD_MODEL_PATH}{path}", b"{}", "judge", right)
        assert (status, json.loads(body)["path"]) == (200, path)
        assert started.asked(path)[0] == 0, path
        assert started.gateway.ask(f"{REWARD_MODEL_PATH}{path}", b"{}", "judge")[0] == 401, path
    assert started.gateway.ask(f"{REWARD_MODEL_PATH}/health", service="judge")[0] == 200
    for path in ("/classify", "/pooling", f"{REWARD_MODEL_PATH}{CHAT}", "/reward_models/other/classify"):
        assert started.gateway.ask(path, b"{}", "judge", right) == (404, no_such_path(path, "judge")), path
    without = scene().gateway.ask(f"{REWARD_MODEL_PATH}/classify", b"{}", "judge")
    assert without[0] == 404 and "REWARD_MODEL_ID" in without[1]


@pytest.mark.parametrize("balancing", ["least_conn", "affinity"])
def test_named_judges_are_judges(scene: Callable[..., Scene], balancing: str) -> None:
    """A named judge has the default one's ways: keys, affinity, a second try, and time to think."""
    started = scene(named, JUDGES, JUDGE_BALANCING=balancing)
    chat, tokenize = f"/judges/small{CHAT}", "/judges/small/tokenize"
    header = {"X-Prompt-Affinity": "one problem"}
    assert [started.gateway.ask(chat, b"{}", "judge", header)[0] for _ in range(6)] == [200] * 6
    assert sorted(started.asked()) == ([0, 0, 6] if balancing == "affinity" else [0, 3, 3])
    for judge in started.judges[1:]:
        judge.set(key="Bearer right")
    assert started.gateway.ask(tokenize, b"{}", "judge")[0] == 401
    assert started.gateway.ask(tokenize, b"{}", "judge", {"Authorization": "Bearer right"})[0] == 200
    assert [sum(started.asked(path)[1:]) for path in ("/tokenize", "/v1/models")] == [1, 2]
    started.judges[1].set(mode="drop")
    right = {"Authorization": "Bearer right"}
    assert [started.gateway.ask(chat, b"{}", "judge", right)[0] for _ in range(6)] == [200] * 6
    for judge in started.judges[1:]:
        judge.kill()
    assert started.gateway.ask(chat, b"{}", "judge", right)[0] == 502
    assert started.chat() == 200
