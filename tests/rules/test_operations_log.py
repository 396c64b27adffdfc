"""The log: JSON, a line a request, a request id, and nothing of what the request held."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rules.conftest import RewardServer

ITEM = {"data_source": "gsm8k", "solution_str": "#### 1, a candidate's own words", "ground_truth": "1"}
KEY = {"X-API-Key": "first-key-of-tests"}
Start = Callable[..., RewardServer]


def lines(server: RewardServer) -> list[dict[str, Any]]:
    """What the server logged; every line is JSON."""
    return [json.loads(line) for line in server.log.read_text().splitlines()]


def line_of(server: RewardServer, ident: str) -> dict[str, Any]:
    """The one line of a request, without what differs from run to run."""
    [line] = [line for line in lines(server) if line.get("request_id") == ident]
    assert isinstance(line.pop("ms"), float) and isinstance(line.pop("pid"), int)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    return line


@pytest.mark.parametrize("arguments", [("--workers", "2"), ()], ids=["gunicorn", "single process"])
def test_a_line_a_request(start: Start, arguments: tuple[str, ...]) -> None:
    """A request's line counts its items by their outcome; a refused one has its line as well."""
    server = start(*arguments, REWARD_SERVER_API_KEYS="first-key-of-tests")
    server.score(ITEM, ITEM, ITEM | {"solution_str": None}, headers={"X-Request-Id": "scored-1", **KEY})
    server.post("/v1/score", {"items": [3]}, headers={"X-Request-Id": "malformed-1", **KEY})
    server.get("/a-candidate's-own-words", headers={"X-Request-Id": "unknown-1", **KEY})
    server.get("/metrics?key=first-key-of-tests", headers={"X-Request-Id": "no-key-1"})

    fixed = {"level": "info", "logger": "rewardstack_rules.http.request_log", "message": "request"}
    assert line_of(server, "scored-1") == fixed | {
        "request_id": "scored-1",
        "method": "POST",
        "endpoint": "/v1/score",
        "code": 200,
        "items": 3,
        "statuses": {"ok": 2, "unscored": 1},
    }
    assert (line_of(server, "malformed-1")["code"], line_of(server, "malformed-1")["items"]) == (400, 0)
    assert (line_of(server, "unknown-1")["code"], line_of(server, "unknown-1")["endpoint"]) == (404, "unknown")
    assert line_of(server, "no-key-1")["code"] == 401
    assert [word for word in ("first-key-of-tests", "candidate", "\\u001b") if word in server.log.read_text()] == []


def test_request_id(server: RewardServer) -> None:
    """A request keeps its id, or is given one, and the reply tells it."""
    kept = server.get("/health", headers={"X-Request-Id": "Trainer-7_step.3"})
    made = [server.get("/health").headers["X-Request-Id"] for _ in range(2)]

    assert kept.headers["X-Request-Id"] == "Trainer-7_step.3"
    assert made[0] != made[1] and all(re.fullmatch("[0-9a-f]{32}", ident) for ident in made)


@pytest.mark.parametrize("ident", ["", "a b", 'a"}', "a" * 129, "\u00e9", "a\tb"])
def test_malformed_request_id(server: RewardServer, ident: str) -> None:
    """What would not do as an id is replaced by one."""
    reply = server.get("/health", headers={"X-Request-Id": ident.encode("latin-1")})

    assert re.fullmatch("[0-9a-f]{32}", reply.headers["X-Request-Id"])


def test_probes_are_quiet(guarded: RewardServer) -> None:
    """Probes and scrapes that are answered leave no line, however often they come."""
    before = len(lines(guarded))
    for path in ("/health", "/ready", "/metrics") * 3:
        assert guarded.get(path, headers=KEY).status_code == 200

    assert len(lines(guarded)) == before


def test_failures_are_logged(hasty: RewardServer) -> None:
    """An item that failed is counted in the line of its request."""
    body = {"prompt": "p", "response": "slow"}
    hasty.post("/get_reward?reward_type=hang", body, headers={"X-Request-Id": "failing-1"})

    assert line_of(hasty, "failing-1")["statuses"] == {"failed": 1}


@pytest.mark.parametrize(("variables", "warnings"), [({}, 1), ({"REWARD_TYPE": "math_verifier"}, 0)])
def test_a_default_reward_type(start: Start, variables: dict[str, str], warnings: int) -> None:
    """Without REWARD_TYPE, the first request without a reward type is warned of, once."""
    server = start(**variables)
    for query in ("?reward_type=gsm8k", "", ""):
        assert server.post(f"/get_reward{query}", {"prompts": ["p"], "responses": ["r"]}).status_code == 200

    messages = [line["message"] for line in lines(server) if line["level"] == "warning"]
    assert len([text for text in messages if text.startswith("REWARD_TYPE is not set and a request has ")]) == warnings


def test_misspelled_options(start: Start, tmp_path: Path) -> None:
    """A misspelled option of a built-in function is warned of once, without an effect on the score."""
    own = tmp_path / "own.py"
    own.write_text(
        "from rewardstack_rules import reward_function\n\n@reward_function\ndef own(response, tolerances=1): return 1\n"
    )
    server = start(REWARD_FUNCTIONS=own)
    server.score(ITEM | {"data_source": "rule_remote_own", "extra_info": {"tolerancee": 1, "tolerances": 2}})
    plain, *scores = server.score(ITEM, *[ITEM | {"extra_info": {"methd": "flexible", "split": "test"}}] * 2)
    server.post("/v1/explain", ITEM | {"extra_info": {"methd": "flexible", "template": "t"}})

    messages = [line["message"] for line in lines(server) if line["level"] == "warning"]
    assert [text for text in messages if "extra_info" in text] == [
        f"extra_info.{name} is not known and has no effect; did you mean extra_info.{meant}?"
        for name, meant in (("methd", "method"), ("template", "prompt_template"))
    ]
    assert {(one["value"], one["reason"]) for one in (plain, *scores)} == {(plain["value"], plain["reason"])}
