"""A Redis that others write to: values that they put into the result cache are never trusted, and are recomputed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import redis as redis_client

from rewardstack import Request, score
from rewardstack.cache.key import PREFIX
from rewardstack.cache.signature import Signer
from services.stack.rundir import ROOT
from tests.rules.conftest import RewardServer, running
from tests.rules.test_operations import metric
from tests.support.servers import FaultServer, Redis
from tests.support.table import Table
from tests.support.waiting import eventually

FAKE_JUDGE = ROOT / "tests/client/judge/fake_judge.py"
FAKE_EMBEDDING = ROOT / "tests/client/embedding/stand_in.py"
SECRET = "the-secret-of-those-who-score"
MINE = """
from rewardstack_rules import reward_function

@reward_function(range=(-1.0, 2.0))
def mine(response, reference):
    return 0.5
"""
SOURCES: dict[str, dict[str, Any]] = {
    "rule_remote_regex_format": {"pattern": "[a-z ]+[0-9]+"},
    "rule_remote_mine": {},
    "llm_judge_remote": {"problem": "What is 6 times 7?", "temperature": 0},
    "embedding_remote": {"cache_size": 0},
}
"""What is scored, with its `extra_info`: by a rule, by one with a range of its own, by a judge, by an embedding."""
NUMBERS = itertools.count()

Forge = Callable[[str, bytes], bytes]
"""What is put under a key in place of the value that was there."""


def record(at: int, value: Any) -> Forge:
    """The score with another field."""

    def forge(key: str, honest: bytes) -> bytes:
        fields = json.loads(honest)
        fields[at] = value
        return json.dumps(fields).encode()

    return forge


def within_its_range(key: str, honest: bytes) -> bytes:
    """Another score that could stand there."""
    return record(1, 1 - json.loads(honest)[1])(key, honest)


FORGED: dict[str, Forge] = {
    "above its range": record(1, 2.5),
    "far above": record(1, 1e300),
    "below its range": record(1, -1.5),
    "not a number": record(1, float("nan")),
    "infinite": record(1, float("inf")),
    "another type": record(1, "1.0"),
    "true": record(1, True),
    "none": record(1, None),
    "of another source": record(2, "rule:gsm8k"),
    "of no source": record(2, ""),
    "cut short": lambda key, honest: honest[:-1],
    "another key's": lambda key, honest: record(0, "00000000")(key, honest),
    "signed": lambda key, honest: Signer(SECRET).sign(key, honest),
    "nested": lambda key, honest: b"[" * 100_000,
}
"""Without a secret; the value is that of an honest reader without one."""
UNSIGNED: dict[str, Forge] = {"within its range": within_its_range, "above its range": record(1, 2.5)}
FORGED_SIGNATURES: dict[str, Forge] = {
    "another's signature": lambda key, bare: Signer("another-secret").sign(key, bare),
    "another key's value": lambda key, bare: Signer(SECRET).sign(key[:-1] + "x", bare),
    "cut short": lambda key, bare: Signer(SECRET).sign(key, bare)[:-1],
    "longer": lambda key, bare: Signer(SECRET).sign(key, bare) + b" ",
    "another value under its signature": lambda key, bare: (
        Signer(SECRET).sign(key, bare)[: -len(bare)] + within_its_range(key, bare)
    ),
    "a signature and nothing more": lambda key, bare: Signer(SECRET).sign(key, bare)[: -len(bare)],
    "half a signature": lambda key, bare: Signer(SECRET).sign(key, bare)[:9],
}
VECTORS: dict[str, Forge] = {
    "not a number": lambda key, honest: honest[:-2] + b"\x00\x7e",
    "infinite": lambda key, honest: honest[:-2] + b"\x00\x7c",
    "cut short": lambda key, honest: honest[:-2],
    "of another length": lambda key, honest: honest[:8] + (3).to_bytes(4, "little") + honest[12:18],
    "of no length": lambda key, honest: honest[:8] + bytes(4),
    "another key's": lambda key, honest: b"00000000" + honest[8:],
}


@dataclass(frozen=True)
class Site:
    """A Redis, and servers and trainers that keep their results there.

    Args:
        cache: the Redis.
        servers: a reward server by the secret that it has.
        variables: of the environment of a trainer that scores directly.
    """

    cache: redis_client.Redis
    servers: dict[str, RewardServer]
    variables: dict[str, str]

    def sample(self, source: str) -> Request:
        """One that nobody has scored."""
        return Request(source, f"an answer {next(NUMBERS)}", "a reference", SOURCES[source])

    def by_a_server(self, secret: str, request: Request) -> tuple[float | None, bool]:
        """Its value from the reward server that has a secret, and whether it came from the cache."""
        names = ("data_source", "solution_str", "ground_truth", "extra_info")
        [one] = self.servers[secret].score({name: getattr(request, name) for name in names})
        assert one["status"] == "ok", one
        return one["value"], one["cached"]

    def by_a_trainer(self, secret: str, request: Request) -> tuple[float | None, bool]:
        """So from a trainer that scores directly; its environment is set by `trainer`."""
        with pytest.MonkeyPatch.context() as patch:
            own = {"REWARD_SERVER_URL": self.servers[secret].url, "REWARD_CACHE_SECRET": secret}
            for name, value in {**self.variables, **own}.items():
                patch.setenv(name, value)
            [one] = score([request])
        assert one.status == "ok", one
        return one.value, one.cached

    def kept(self, ask: Callable[[], tuple[float | None, bool]]) -> dict[str, bytes]:
        """What asking writes to the cache: read until it repeats, for writes of earlier tests may still be pending."""
        found: list[dict[str, Any]] = [{}]

        def twice() -> bool:
            self.cache.flushall()
            eventually(lambda: ask()[1])
            found.append({name.decode(): self.cache.get(name) for name in self.cache.scan_iter(f"{PREFIX}*")})
            return found[-1] == found[-2] != {}

        eventually(twice)
        return found[-1]


Ask = Callable[[str, Request], tuple[float | None, bool]]


@pytest.fixture(scope="module")
def site(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two reward servers and a trainer that remember nothing themselves: one server has the secret, the other none."""
    folder = tmp_path_factory.mktemp("forged")
    (folder / "mine.py").write_text(MINE)
    with ExitStack() as stack:
        redis = Redis(folder)
        stack.callback(redis.kill)
        judge, embedding = FaultServer(script=FAKE_JUDGE), FaultServer(script=FAKE_EMBEDDING)
        stack.callback(judge.kill)
        stack.callback(embedding.kill)
        models = {"LLM_JUDGE_SERVER_URL": judge.url, "EMBEDDING_SERVER_URL": embedding.url}
        common = {**models, "REWARD_CACHE_URL": redis.url, "REWARD_CACHE_ITEMS": "0"}
        own = {"REWARD_FUNCTIONS": folder / "mine.py", **common}
        servers = {
            secret: stack.enter_context(running(folder, "--workers", "1", REWARD_CACHE_SECRET=secret, **own))
            for secret in ("", SECRET)
        }
        yield Site(redis_client.Redis.from_url(redis.url), servers, common)


@pytest.fixture(params=["a server", "a trainer"])
def ask(site: Site, request: pytest.FixtureRequest) -> Ask:
    """Who reads the cache."""
    return site.by_a_server if request.param == "a server" else site.by_a_trainer


def check(site: Site, ask: Ask, secret: str, source: str, forge: Forge, which: Callable[[bytes], bool]) -> None:
    """Forged values are never believed, and the honest ones stand in their place soon after.

    Args:
        site: where all this is.
        ask: who reads.
        secret: of the reader.
        source: of the sample.
        forge: makes a forgery of a key and the honest value, signature aside.
        which: of the values are forged; the others are deleted.
    """
    sample = site.sample(source)
    honest = site.kept(lambda: ask(secret, sample))
    value, _ = ask(secret, sample)
    bare = {name: Signer(secret).verify(name, data) or b"" if secret else data for name, data in honest.items()}
    forged = {name: forge(name, data) for name, data in bare.items() if which(data)}
    assert forged
    site.cache.flushall()
    site.cache.mset(dict(forged))

    def mended() -> bool:
        assert value == ask(secret, sample)[0]
        return all(site.cache.get(name) == honest[name] for name in forged)

    eventually(mended)


def is_score(data: bytes) -> bool:
    """Whether a value, signature aside, is a score; else it is a vector."""
    return data.startswith(b"[")


def is_vector(data: bytes) -> bool:
    """The contrary."""
    return not is_score(data)


@pytest.mark.nightly
@pytest.mark.parametrize("source", SOURCES)
def test_scores(site: Site, ask: Ask, source: str, table: Table) -> None:
    """Without a secret no value is believed that its scorer cannot have given."""
    for name, forge in FORGED.items():
        with table.case(name):
            check(site, ask, "", source, forge, is_score)


def test_scores_without_a_seal(site: Site, ask: Ask, table: Table) -> None:
    """With a secret no value without a signature is believed, whatever it says."""
    for source, (name, forge) in itertools.product(SOURCES, UNSIGNED.items()):
        with table.case(f"{source}, {name}"):
            check(site, ask, SECRET, source, forge, is_score)


@pytest.mark.parametrize("forgery", FORGED_SIGNATURES)
def test_scores_with_another_signature(site: Site, ask: Ask, forgery: str) -> None:
    """With a secret no value is believed whose signature is another's, another key's or value's, or is cut off."""
    check(site, ask, SECRET, "rule_remote_regex_format", FORGED_SIGNATURES[forgery], is_score)


@pytest.mark.parametrize("forgery", VECTORS)
def test_vectors(site: Site, ask: Ask, forgery: str) -> None:
    """A stored vector that is not one of that model is computed again."""
    check(site, ask, "", "embedding_remote", VECTORS[forgery], is_vector)


def test_vectors_without_a_seal(site: Site, ask: Ask) -> None:
    """With a secret no vector without a signature is believed, be it well formed."""
    check(site, ask, SECRET, "embedding_remote", lambda key, honest: honest[:12] + honest[:11:-1], is_vector)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("secret", ["", SECRET])
def test_those_with_the_same_secret_share(site: Site, source: str, secret: str) -> None:
    """What a server keeps a trainer with its secret reads, and one with another or none does not."""
    sample = site.sample(source)
    site.kept(lambda: site.by_a_server(secret, sample))
    eventually(lambda: site.by_a_trainer(secret, sample)[1])
    other = "" if secret else SECRET
    assert not site.by_a_trainer(other, sample)[1]


def test_they_are_counted_and_said_once(site: Site) -> None:
    """What is not believed is counted, and the log says it once, with the setting that it may be due to."""
    server, sample = site.servers[SECRET], site.sample("rule_remote_regex_format")

    def counted() -> float:
        return metric(server.get("/metrics").text, "rewardstack_cache_refused_total")

    def are_counted() -> bool:
        check(site, site.by_a_server, SECRET, sample.data_source, within_its_range, is_score)
        return before + 3 <= counted()

    before = counted()
    eventually(are_counted)
    log = server.log.read_text()
    assert (log.count("not signed with this REWARD_CACHE_SECRET"), SECRET in log) == (1, False)
