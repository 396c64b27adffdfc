"""What an explanation tells of a judge: options, messages, replies, and what was read in them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewardstack import score
from rewardstack.transport import timing
from rewardstack.transport.recording import Recording
from tests.client.judge.conftest import asked, forget, sample
from tests.client.judge.test_verdict import CASES
from tests.support.explaining import explained, named
from tests.support.servers import FaultServer
from tests.support.table import Table

REQUEST = "request for a verdict"


def test_a_verdict(judge: FaultServer) -> None:
    """The messages are those that were sent; reply, reasoning and the line that was read stand beside them."""
    judge.set(content="It fits.\nREWARD: 0.750", reasoning="6 times 7 is 42.")
    found = explained(sample(temperature=0))
    [told] = named(found.steps, REQUEST)
    system, user = (message["content"] for message in asked(judge)[-1]["messages"])
    assert (told["system"], told["user"], told["reference"]) == (system, user, "1 of 1")
    assert told["reply"] == "It fits.\nREWARD: 0.750"
    assert (told["reasoning"], told["finish reason"]) == ("6 times 7 is 42.", "stop")
    assert (told["line read"], told["verdict"]) == ("REWARD: 0.750", 0.75)
    assert found.score is not None and found.score.value == 0.75


def test_options(judge: FaultServer) -> None:
    """Each option has its value, and whether the sample gave it or it is the default."""
    options = named(explained(sample(temperature=0, model_name="small")).steps, "prepared")[0]["options"]
    assert options["temperature"] == {"value": 0.0, "from": "extra_info.temperature"}
    assert options["model"] == {"value": "small", "from": "extra_info.model_name"}
    assert options["template"] == {"value": "default", "from": "default"}
    assert options["top_p"] == {"value": 0.8, "from": "default"}


def test_options_of_a_named_judge(judge: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the routes file says of a judge is told as the file's, whatever the sample says, and the rest as before."""
    file = {"base_url": judge.url, "model": "m", "template": "binary", "options": {"temperature": 0.5}}
    (tmp_path / "routes.json").write_text(json.dumps({"judges": {"small": file}}))
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(tmp_path / "routes.json"))
    given = sample(temperature=1, top_p=0.5, prompt_template="points", model_name="other")
    options = named(explained(replace(given, data_source="small")).steps, "prepared")[0]["options"]
    assert options["temperature"] == {"value": 0.5, "from": "judges.small.options.temperature"}
    assert options["template"] == {"value": "binary", "from": "judges.small.template"}
    assert options["model"] == {"value": "m", "from": "judges.small.model"}
    assert options["top_p"] == {"value": 0.5, "from": "extra_info.top_p"}


def test_an_own_template(judge: FaultServer) -> None:
    """A custom template is shown as it is written."""
    own = "Rate {CANDIDATE_SOLUTION}.\nREWARD: <0-1>"
    options = named(explained(sample(prompt_template=own)).steps, "prepared")[0]["options"]
    assert options["template"] == {"value": own, "from": "extra_info.prompt_template"}


def test_votes_and_references(judge: FaultServer) -> None:
    """Every vote on every reference has its own step."""
    found = explained(sample(reference=["42", "43"], num_samples=3, seed=5))
    assert sorted(told["reference"] for told in named(found.steps, REQUEST)) == ["1 of 2"] * 3 + ["2 of 2"] * 3


def test_long_texts(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many requests with one long text do not take memory without bound: what is too much is left out, and says so."""
    monkeypatch.setattr(Recording.__init__, "__defaults__", (10_000,))
    found = explained(sample("x" * 3000, num_samples=4))
    told = named(found.steps, REQUEST)
    kept = [one for one in told if "reply" in one]
    assert 0 < len(kept) < 4 == len(told)
    assert all("not recorded" in one["note"] for one in told if one not in kept)
    assert found.score is not None and found.score.status == "ok"


def test_labels(judge: FaultServer) -> None:
    """Where the verdict is read from probabilities, each label's is told by its name."""
    judge.set(chances={"A": 0.6, "B": 0.2})
    extra: dict[str, Any] = {
        "verdict": "logprob",
        "labels": {"A": 1, "B": 0},
        "prompt_template": "Rate {CANDIDATE_SOLUTION}",
    }
    found = explained(sample(**extra))
    [told] = named(found.steps, REQUEST)
    assert told["probabilities"] == pytest.approx({"A": 0.6, "B": 0.2})
    assert found.score is not None and (told["verdict"], told["label mass"]) == (
        found.score.value,
        found.score.label_mass,
    )


def test_the_same_as_scoring(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """Whatever the judge replies, the explained verdict is the score, or the reason why there is none."""
    for case in CASES:
        with table.case(case["name"]):
            forget(judge, monkeypatch)
            assert_the_same_as_scoring(judge, case)


def assert_the_same_as_scoring(judge: FaultServer, case: dict[str, Any]) -> None:
    """Explain and score one reply of the judge."""
    template = {"prompt_template": "Rate {CANDIDATE_SOLUTION}\nREWARD: <number>", "score_range": case["range"]}
    extra: dict[str, Any] = {"temperature": 0, **template}
    judge.set(content=case["text"], finish="stop")
    found, [scored] = explained(sample(**extra)), score([sample(**extra, cache_enabled=False)])
    told = named(found.steps, REQUEST)[-1]
    assert found.score is not None
    assert (found.score.value, found.score.status, found.score.reason) == (scored.value, scored.status, scored.reason)
    if scored.status == "ok":
        assert told["verdict"] == scored.value
    else:
        assert (told["verdict"], told["why"]) == (None, scored.reason)


@pytest.mark.parametrize("raw", ["no JSON", "[]", json.dumps({"choices": [{"message": "x"}]})])
def test_a_reply_that_is_none(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    """A reply that is no chat completion is shown, and leaves the sample without a score."""
    monkeypatch.setattr(timing, "RETRY_PAUSE", 0.01)
    judge.set(raw=raw)
    found = explained(sample(temperature=0))
    told = named(found.steps, REQUEST)[-1]
    assert (told["reply"], told["verdict"]) == (raw, None)
    assert found.score is not None and found.score.status == "failed"


def test_a_judge_that_answers_with_errors(judge: FaultServer) -> None:
    """The request and the error that it met are told."""
    judge.set(status=400, error={"error": {"message": "what a request"}})
    found = explained(sample(temperature=0))
    told = named(found.steps, REQUEST)[-1]
    assert found.score is not None and "what a request" in told["error"] and found.score.status == "failed"


def test_a_wrong_option(judge: FaultServer) -> None:
    """An option that cannot be used is named, and nobody is asked."""
    found = explained(sample(temperature=9))
    assert "extra_info.temperature" in json.dumps(found.record())
    assert found.score is None or found.score.status == "unscored"
    assert not asked(judge)
