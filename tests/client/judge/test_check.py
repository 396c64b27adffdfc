"""`rewardstack check` on a judge: what works, and the remedy for flags that do not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rewardstack.scorers.judge.fences import SPLITTER
from tests.client.check_command import check
from tests.support.servers import FaultServer

THOUGHTS = {"content": "", "reasoning": "The candidate is right."}
TROUBLES: dict[str, tuple[dict[str, Any], str]] = {
    "parser takes all for reasoning": (THOUGHTS, "start the server without --reasoning-parser"),
    "thinks in spite of the flag": ({"reasoning": "Hm."}, "use another model or template"),
    "thinks in the text": ({"content": "<think>Hm.</think>REWARD: 1.000"}, "use another model or template"),
    "empty": ({"content": ""}, "start the server without --reasoning-parser"),
    "ignores the form": ({"content": "It is right."}, "`structured_outputs` needs vLLM 0.11 or later"),
    "no chat": ({"raw": "{}"}, "another service answers there"),
    "no models": ({"models": None}, "another service answers there"),
    "two models": ({"models": [{"id": "a"}, {"id": "b"}]}, "set LLM_JUDGE_MODEL to one that it serves: a, b"),
    "overload": ({"status": 503}, "the server is not ready"),
    "token of an unknown form": ({"specials": ["<%end%>"]}, "which are not neutralized: <%end%>"),
    "tokenizer that drops the break": ({"specials": ["<think>"], "drops": SPLITTER}, "use another model as the judge"),
    "key": ({"status": 401}, "set LLM_JUDGE_SERVER_API_KEY to one of the server's keys (--api-key)"),
}


@pytest.mark.usefixtures("needs_process")
def test_works(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that works is shown with its model and a verdict."""
    monkeypatch.setenv("COLUMNS", "200")
    judge.set(content="REWARD: 0.750", specials=["<|im_end|>", "[|user|]", "<think>"])
    command = [sys.executable, "-m", "rewardstack_cli", "check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "verdict 0.750 in" in done.stdout and "small" in done.stdout


@pytest.mark.parametrize(("state", "remedy"), TROUBLES.values(), ids=TROUBLES)
def test_troubles(judge: FaultServer, state: dict[str, Any], remedy: str) -> None:
    """What is wrong is said, with the remedy."""
    judge.set(**state)
    status, text = check()
    assert 1 == status and remedy in text


@pytest.mark.parametrize(
    ("state", "note"),
    [
        ({"refuse": "/tokenize"}, "verdict 'logprob' cannot be used"),
        ({"ignores": ["enable_thinking"]}, "does not honor enable_thinking"),
        ({"chances": {"9": 0.6, "0": 0.36}}, "label mass 0.96"),
        ({"chances": {"9": 0.07}}, "label mass 0.07, which is below label_mass_floor 0.5"),
        ({"ignores": ["logprob_token_ids"]}, "verdict 'logprob' cannot be used: it returns no probabilities"),
    ],
)
def test_notes(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, state: dict[str, Any], note: str) -> None:
    """What only some users need is a note, not an error: a feature it lacks, and the probability of its labels."""
    monkeypatch.setenv("COLUMNS", "300")
    judge.set(**state)
    status, text = check()
    assert 0 == status and note in text


def test_query(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the judge is asked has the query of the environment, as the client's requests have."""
    monkeypatch.setenv("LLM_JUDGE_QUERY", "tenant=7")
    check()
    paths = ["/tokenize", "/v1/chat/completions", "/v1/models", "/version"]
    assert [f"{path}?tenant=7" for path in paths] == judge.stats()["paths"]


def test_named_judges(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each judge of the routes file is tried, with its own model and key; the remedy names its own fields."""
    judge.set(content="REWARD: 0.750", specials=["<|im_end|>", "[|user|]", "<think>"])
    judges: dict[str, dict[str, Any]] = {
        "direct": {"base_url": judge.url, "model": "small"},
        "below": {"model": "small"},
        "other": {"base_url": judge.url, "model": "absent"},
        "keyless": {"base_url": judge.url, "api_key_env": "ABSENT_KEY"},
        "gone": {"base_url": "http://127.0.0.1:9"},
    }
    (tmp_path / "routes.json").write_text(json.dumps({"judges": judges}))
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(tmp_path / "routes.json"))
    monkeypatch.setenv("COLUMNS", "200")
    status, text = check()
    assert (1, 3) == (status, text.count("verdict 0.750 in"))
    assert "/judges/below" in text
    assert "judge other" in text and "set judges.other.model to one that it serves: small" in text
    assert "ABSENT_KEY is not set" in text and "set ABSENT_KEY to the judge's key" in text
    assert "start it, or correct judges.gone.base_url" in text
    verdicts = [body for body in judge.stats()["bodies"] if "logprobs" not in body]
    assert 3 == len(verdicts)


def test_named_judge_that_cannot_do_what_is_asked(
    judge: FaultServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is a note on any judge is a fault of one whose verdicts are to be read from probabilities."""
    judge.set(content="REWARD: 0.750", refuse="/tokenize")
    labelled = {"base_url": judge.url, "model": "small", "options": {"verdict": "logprob"}}
    (tmp_path / "routes.json").write_text(json.dumps({"judges": {"labelled": labelled}}))
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(tmp_path / "routes.json"))
    monkeypatch.delenv("LLM_JUDGE_SERVER_URL")
    status, text = check()
    assert 1 == status
    assert "verdict 'logprob' cannot be used: /tokenize does not answer" in text
    assert "leave `verdict` out of judges.labelled.options" in text
