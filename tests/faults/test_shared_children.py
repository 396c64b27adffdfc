"""Code that runs in a function of one key changes nothing for another key, and nothing for built-in rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rules.conftest import RewardServer, running
from tests.support.isolated import children_of
from tests.support.table import Table
from tests.support.waiting import eventually

FUNCTION = """\
from rewardstack_rules import reward_function

@reward_function(confined={confined}, name="{name}")
def executes(response, reference=None):
    names = {{}}
    exec(response, names)
    return {{"score": float(names.get("value", 0)), "reason": repr(names.get("result"))}}
"""
POISONS = {
    "the child's loop": """
from rewardstack_rules.isolation import child
seen = []
def run(entry, body, config):
    seen.append(body)
    return child.dump({"status": "ok", "value": 1.0, "reason": repr(seen), "parts": None, "field": None,
                       "verdicts": [{"right": True, "reason": "", "by": ""}] * body.count(b"cos")})
child._run = run
""",
    "a built-in function": """
from rewardstack_rules.scoring import task
from rewardstack_verifier.question import Ruling
task.decide = lambda question: Ruling(True)
task.evaluate = lambda *_: task.Outcome(1.0, "poisoned")
""",
    "a module of the interpreter": """
import json
json.loads = lambda *_, **__: {}
json.dumps = lambda *_, **__: '{"status":"ok","value":1.0,"reason":"","parts":null,"field":null}'
""",
    "a class": """
from rewardstack_rules.functions.registry import Registry
Registry.get = lambda *_: (_ for _ in ()).throw(KeyError("poisoned"))
""",
}
WRONG = {"data_source": "math", "solution_str": "\\boxed{\\sin^2(x)+\\cos^2(x)+1}", "ground_truth": "1"}
NAMES = ("confined", "open")


@pytest.fixture(scope="module")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with two keys, one process of each kind, and functions that execute their responses."""
    folder = tmp_path_factory.mktemp("shared")
    for name, confined in zip(NAMES, (True, False), strict=True):
        (folder / f"{name}.py").write_text(FUNCTION.format(name=name, confined=confined))
    files = ":".join(str(folder / f"{name}.py") for name in NAMES)
    keys = {"REWARD_SERVER_API_KEYS": "key-of-the-tests-a,key-of-the-tests-b", "REWARD_CACHE_ITEMS": 0}
    with running(folder, "--workers", "1", REWARD_FUNCTIONS=files, VERIFY_PROCESSES=1, **keys) as one:
        yield one


def score(server: RewardServer, key: str, *items: dict[str, Any]) -> list[dict[str, Any]]:
    """The scores that a key gets."""
    reply = server.post("/v1/score", {"items": items}, headers={"Authorization": f"Bearer key-of-the-tests-{key}"})
    assert reply.status_code == 200, reply.text
    scores: list[dict[str, Any]] = reply.json()["scores"]
    return scores


def code(name: str, text: str) -> dict[str, Any]:
    """A sample that is executed."""
    return {"data_source": f"rule_remote_{name}", "solution_str": text}


@pytest.mark.parametrize("name", NAMES)
def test_other_key(server: RewardServer, name: str, table: Table) -> None:
    """Whatever one key's code replaces in its process, another key's samples have their scores, and are not read."""
    for at, (what, poison) in enumerate(POISONS.items()):
        with table.case(what):
            score(server, "a", code(name, poison))
            wrong = {**WRONG, "solution_str": WRONG["solution_str"].replace("1}", f"{at + 1}}}")}
            secret = code(name, f"value, result = 0.25, 'secret-of-b-{at}'")
            math, own = score(server, "b", wrong, secret)
            assert (math["status"], math["value"]) == ("ok", 0.0), math
            assert (own["status"], own["value"]) == ("ok", 0.25), own
            assert "secret-of-b" not in json.dumps(score(server, "a", code(name, "result = 1"), WRONG))


@pytest.mark.parametrize("name", NAMES)
def test_built_in_rules(server: RewardServer, name: str) -> None:
    """The same key's built-in rules are scored in other processes than its own functions."""
    for poison in POISONS.values():
        score(server, "a", code(name, poison))
        [math] = score(server, "a", WRONG)
        assert (math["status"], math["value"]) == ("ok", 0.0)


def test_one_key(server: RewardServer) -> None:
    """A key alone keeps its process from sample to sample: no fork a sample."""
    same = code("open", "import os; result = os.getpid()")
    assert len({score(server, "b", same)[0]["reason"] for _ in range(5)}) == 1


def test_readiness(server: RewardServer) -> None:
    """The readiness probe is not answered by a process that code of a key has changed."""
    for poison in POISONS.values():
        score(server, "a", *(code(name, poison) for name in NAMES))
        assert server.get("/ready").json()["checks"]["isolation"] is True
    eventually(lambda: len(children_of(server.url.rpartition(":")[2])) == 3)
