"""The cache's keys: all that determines a score changes them, nothing else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardstack import Request, score
from rewardstack.cache import key as keys
from rewardstack.cache.key import Key, rule_key, tenant_of
from rewardstack.cache.store import ResultCache
from rewardstack.cache.value import decode, encode
from rewardstack.pipeline.scorer import Scorer
from rewardstack.score import Item, Score
from rewardstack.settings import Settings
from tests.support.scoring import pipeline_of, scored
from tests.support.servers import FaultServer
from tests.support.table import Table

CASES = json.loads((Path(__file__).resolve().parents[1] / "cases" / "cache_key.json").read_text())


def key_of(case: dict[str, Any]) -> str:
    """The key of the table's item after the changes that `case` makes to it."""
    extra = {name: value for name, value in CASES["item"]["extra"].items() if name not in case.get("without", ())}
    item = {**CASES["item"], "extra": {**extra, **case.get("extra", {})}, **case.get("item", {})}
    name, fingerprint = case.get("name", CASES["name"]), case.get("fingerprint", CASES["fingerprint"])
    (key,) = rule_key(name, fingerprint, case.get("fields", CASES["fields"]), [_item(item)])
    assert key is not None
    return key.text


def _item(fields: dict[str, Any]) -> Item:
    return Item(fields["solution"], tuple(fields.get("references", ())), fields.get("extra", {}))


def test_what_changes_the_key(table: Table) -> None:
    """Whatever a score depends on gives another key."""
    for case in CASES["changes"]:
        with table.case(case["what"]):
            assert key_of({}) != key_of(case)


@pytest.mark.parametrize("case", CASES["no_changes"], ids=lambda case: case["what"])
def test_what_leaves_the_key(case: dict[str, Any]) -> None:
    """Whatever the function does not read, or only tells the client where and how to ask, leaves the key."""
    assert key_of({}) == key_of(case)


@pytest.mark.parametrize("version", ["PIPELINE_VERSION", "PREFIX"])
def test_versions(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Another version of the flow, or of how values are written, gives another key."""
    before = key_of({})
    monkeypatch.setattr(keys, version, "2")
    assert before != key_of({})


def test_function_that_reads_everything() -> None:
    """For a function that reads all of `extra_info` every field counts, but those for the client."""
    every = {"fields": ["*"]}
    assert key_of(every) != key_of({**every, "extra": {"prompt": "How many?"}})
    assert key_of(every) != key_of({**every, "extra": {"num_turns": 3}})
    assert key_of(every) == key_of({**every, "extra": {"server_url": "http://a", "api_key": "b", "timeout": 10}})


@pytest.mark.parametrize(("one", "other"), CASES["look_alikes"])
def test_look_alikes(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Samples whose parts run together to the same text have different keys."""
    first, second = rule_key("mine", "f", ["*"], [_item(one), _item(other)])
    assert first != second


def test_function_and_fingerprint_do_not_run_together() -> None:
    """The end of the name and the beginning of the fingerprint cannot trade places."""
    assert rule_key("ab", "c", (), [Item("x")]) != rule_key("a", "bc", (), [Item("x")])


def test_the_same_data_from_other_loaders() -> None:
    """NumPy's numbers and arrays and Python's own give the same key."""
    plain = Item("a", ("1",), {"x": [1, 2], "y": 0.5, "z": True})
    loaded = Item("a", ("1",), {"x": np.array([1, 2]), "y": np.float64(0.5), "z": np.bool_(True)})
    first, second = rule_key("mine", "f", ["*"], [plain, loaded])
    assert first == second


def test_what_cannot_be_written_down() -> None:
    """A sample with something in it that JSON cannot hold has no key; its neighbours have theirs."""
    without, with_key = rule_key("mine", "f", ["*"], [Item("a", (), {"x": object()}), Item("a")])
    assert (None, True) == (without, isinstance(with_key, Key))


def test_text_that_is_no_unicode() -> None:
    """Half a surrogate pair, as broken tokens leave it, has a key of its own."""
    first, second = rule_key("mine", "f", (), [Item("\ud83d"), Item("\ud83e")])
    assert first != second


def test_tenants() -> None:
    """Each API key is a tenant of its own, no key is none, and the key cannot be read from the tenant."""
    assert 3 == len({tenant_of(""), tenant_of("first"), tenant_of("second")})
    assert "" == tenant_of("")
    assert "first" not in tenant_of("first")


class Echo(Scorer[Item]):
    """A scorer that is never asked twice for what its cache has; it notes the keys under which it was asked."""

    source, timeout = "rule:echo", 60.0

    async def keys(self, items: Any, context: Any) -> list[Key | None]:
        """Keys as a rule has them."""
        return rule_key("echo", "f", (), items)

    async def score(self, items: Any, context: Any) -> list[Score]:
        """A solution scores its length."""
        return [Score(float(len(item.solution)), source=self.source) for item in items]


class Noted(ResultCache):
    """A cache that notes the keys it is asked for."""

    def __init__(self) -> None:
        super().__init__(Settings.from_env({}))
        self.asked: list[str] = []

    def get_from_memory(self, keys: Any) -> list[Score | None]:
        """As `ResultCache` has it."""
        self.asked += keys
        return super().get_from_memory(keys)


async def test_values_of_one_tenant_are_told_apart() -> None:
    """For a tenant, too, a value that belongs to another of its keys is not taken."""
    cache = Noted()
    await scored(pipeline_of(Echo(), cache, tenant_of("secret")), Item("a"), Item("b"))
    first, second = cache.asked
    assert first != second
    assert decode(second, encode(first, Score(1.0, source="s"))) is None


def test_tenants_do_not_share(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one API key has scored is not read by another, and is read by itself."""
    cached = []
    for api_key in ("first", "second", "first", ""):
        monkeypatch.setenv("REWARD_SERVER_API_KEY", api_key)
        cached.append(score([Request("math", "of a tenant", "1")])[0].cached)
    assert [False, False, True, False] == cached


def test_what_the_flow_puts_into_the_key(server: FaultServer) -> None:
    """End to end, a change of a field that the function reads asks the server again; a change of any other does not."""
    server.set(fields=["tolerance"])
    requests = [
        Request("math", "a long road", ["1", "2"], {"tolerance": 1, "prompt": "x"}),
        Request("math", "a long road", ["1", "2"], {"tolerance": 1, "prompt": "y", "timeout": 90}),
        Request("math", "a long road", ["1", "2"], {"tolerance": 2}),
        Request("math", "a long road", ["2", "1"], {"tolerance": 1}),
        Request("math", "a long road", ["1", "2"], {"tolerance": 1, "target_gt": "1"}),
        Request("math", "a long road", "1", {"tolerance": 1}),
        Request("gsm8k", "a long road", ["1", "2"], {"tolerance": 1}),
    ]
    cached = [score([one])[0].cached for one in requests]
    assert [False, True, False, False, False, True, False] == cached
