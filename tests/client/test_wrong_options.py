"""What is wrong with options is heard: it is raised where all of a call have it, else an outcome and a warning."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, client, register_route, score
from rewardstack.errors import ConfigError, RequestError, RouteError
from rewardstack.scorers import names
from tests.client.judge.conftest import JUDGE
from tests.client.test_statuses import SOURCES, embedding, forget_both, judge, one_judge, servers, warnings
from tests.support.servers import FaultServer
from tests.support.table import Table

CASES = json.loads((Path(__file__).parents[1] / "cases" / "wrong_options.json").read_text())
MANY = 1024
WRONG = {"temperature": 9}
TRAINERS = (
    *("index", "split", "answer", "question", "label", "prompts", "prompt_ids", "problem_id", "num_turns"),
    *("need_tools_kwargs", "tools_kwargs", "interaction_kwargs", "rollout_reward_scores", "reward_model", "ability"),
    *("data_source", "ground_truth", "raw_prompt", "solution", "level", "subject", "expected_answer", "reward_spec"),
    *("truncated", "n_samples", "num_samples"),
)

__all__ = ["embedding", "judge", "one_judge", "servers"]


@pytest.fixture(autouse=True)
def forgotten(servers: dict[str, FaultServer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that answer, no routes of other tests, and no name that was looked at before."""
    forget_all(servers, monkeypatch)


def forget_all(servers: dict[str, FaultServer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next case find the servers and the client as a test does."""
    forget_both(servers, monkeypatch)
    servers["judge"].set(content="REWARD: 0.5")
    monkeypatch.setattr(client, "_registered", {})
    monkeypatch.setattr(names, "_checked", set())
    names._check_names.cache_clear()


def samples(*extras: Any, source: str = JUDGE) -> list[Request]:
    """A sample for each `extra_info`."""
    return [Request(source, f"It is {at}", "It is 42", extra) for at, extra in enumerate(extras)]


def test_all_of_a_run(servers: dict[str, FaultServer], caplog: pytest.LogCaptureFixture, table: Table) -> None:
    """A run all of whose samples have a wrong setting ends with an error, or hears a warning, that names it."""
    for at, case in enumerate(CASES):
        with table.case(f"{at} {case['says'][:40]}"), pytest.MonkeyPatch.context() as patch:
            forget_all(servers, patch)
            for name, text in case.get("environment", {}).items():
                patch.setenv(name, text)
            caplog.clear()
            assert_heard(case, caplog)


def assert_heard(case: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """Score a run all of whose samples have the case's wrong setting."""
    reference = case.get("reference", "It is 42")
    requests = [Request(SOURCES[case["by"]], f"It is {at % 2}", reference, case.get("extra")) for at in range(MANY)]
    if case.get("warned"):
        score(requests, timeout=30)
        assert 1 == sum(case["says"] in line for line in warnings(caplog.records))
    else:
        with pytest.raises(ConfigError) as caught:
            score(requests, on_error="zero", timeout=30)
        assert case["says"] in str(caught.value)


@pytest.mark.parametrize(
    "extras",
    [[WRONG], [WRONG, {}], [WRONG, {"top_p": 9}], [WRONG, {"timeout": -1}]],
    ids=["one", "some", "others", "one is not read"],
)
def test_not_the_same_in_all(extras: Sequence[dict[str, Any]], caplog: pytest.LogCaptureFixture) -> None:
    """In a call of one sample, and where the others do not have it, it is that sample's outcome and is warned of."""
    first = score(samples(*extras))[0]
    assert (0.0, "unscored", "extra_info.temperature") == (first.value, first.status, first.field)
    assert any("samples are unscored; first error: extra_info.temperature" in line for line in warnings(caplog.records))


def test_one_warning_a_batch(caplog: pytest.LogCaptureFixture) -> None:
    """However many samples are unscored, the batch has one warning, and the judge's line counts them."""
    with caplog.at_level(logging.INFO):
        score(samples(*[WRONG | {"problem": "p"}, {"problem": "p"}] * 8))
    assert ["llm_judge: 8 of 16 samples are unscored"] == [line[:39] for line in warnings(caplog.records)]
    assert "0 failed, 0 of them without a readable verdict, 8 unscored" in caplog.text


def test_nothing_is_asked(servers: dict[str, FaultServer]) -> None:
    """The error comes before any request, also where answers are blank and the wrong values differ."""
    requests = samples(WRONG, {"temperature": "cold"})
    requests[0].solution_str = " "
    told = r"got \S+ \(the first of 2 samples; all have this error\)$"
    with pytest.raises(RequestError, match=r"^extra_info\.temperature: .*" + told) as caught:
        score(requests)
    assert ("extra_info.temperature", 0) == (caught.value.field, servers["judge"].stats()["requests"])


@pytest.mark.parametrize("spec", [
    {"sum": ["embedding_remote", "llm_judge_remote"], "on_part_error": "zero"},
    {"gate": "embedding_remote", "then": "llm_judge_remote", "on_part_error": "zero"},
    {"cascade": ["llm_judge_remote", "embedding_remote"], "on_part_error": "skip"},
    "llm_judge_remote",
])  # fmt: skip
def test_part_of_a_composite(spec: Any, caplog: pytest.LogCaptureFixture) -> None:
    """An option that is wrong in all samples of a part is raised, whatever the route makes of the part; in a call that
    has others, it is warned of."""
    register_route("made", spec)
    same = [Request("made", "abc", "abc", WRONG)] * 2
    with pytest.raises(RequestError, match=r"^extra_info\.temperature"):
        score(same)
    register_route("other", "embedding_remote")
    caplog.clear()
    assert "ok" == score([*same, Request("other", "abc", "abc")])[2].status
    assert any("2 of 2 samples are unscored" in line for line in warnings(caplog.records))


@pytest.mark.parametrize(("others", "raised"), [({}, False), (WRONG, True)], ids=["some", "all"])
def test_part_that_is_asked_about_some(others: dict[str, Any], raised: bool) -> None:
    """An option that is wrong in all that pass a gate is raised where those that do not pass have it, too."""
    register_route("made", {"gate": "embedding_remote", "then": "llm_judge_remote"})
    requests = [Request("made", text, "abc", extra) for text, extra in [("abc", WRONG), ("cab", WRONG), ("xy", others)]]
    if raised:
        with pytest.raises(RequestError, match=r"^extra_info\.temperature"):
            score(requests)
    else:
        assert ["unscored", "unscored", "ok"] == [one.status for one in score(requests)]


def test_behind_a_reward_server(server: FaultServer) -> None:
    """What a reward server says of every sample is raised; where it says so of one alone, that one is unscored."""
    wrong = "extra_info.method: expected one of strict, flexible, got 'lax'"
    server.set(said={"value": 0.0, "status": "unscored", "reason": wrong, "field": "extra_info.method"})
    requests = [Request("gsm8k", f"{at}", "1") for at in range(MANY)]
    with pytest.raises(RequestError, match=f"^{wrong} ") as caught:
        score(requests, on_error="none")
    assert "extra_info.method" == caught.value.field
    assert ["unscored"] == [one.status for one in score(requests[:1])]


def test_routes_are_checked_whole() -> None:
    """A route that is made of what there is not is an error of the first call, whichever route that takes."""
    register_route("broken", {"sum": ["llm_judge_remote", "nowhere"]})
    with pytest.raises(RouteError, match=r"^route 'broken': data_source 'nowhere' has no route"):
        score(samples({}))


def test_names_of_trainers(caplog: pytest.LogCaptureFixture) -> None:
    """What trainers and data sets put into `extra_info`, and what is read, is not warned of."""
    names.warn_of_misspelled_fields(samples(dict.fromkeys(TRAINERS), dict.fromkeys(names.KNOWN_FIELDS), None, ["x"]))
    assert [] == warnings(caplog.records)


def test_a_slip_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """However many samples, of whatever other names, have a name that is nearly an option's, it is warned of once."""
    names.warn_of_misspelled_fields(
        samples(*({"maxNewTokens": 1, "template": "binary", "modle": 3, str(at): at} for at in range(64)))
    )
    assert [
        "extra_info.maxNewTokens is not known and has no effect; did you mean extra_info.max_new_tokens?",
        "extra_info.template is not known and has no effect; did you mean extra_info.prompt_template?",
        "extra_info.modle is not known and has no effect; did you mean extra_info.model?",
    ] == warnings(caplog.records)


def test_names_without_end() -> None:
    """A process looks at so many names and no more."""
    names.warn_of_misspelled_fields(samples(*({f"column_{at}": at} for at in range(2 * names.MAX_NAMES))))
    assert names.MAX_NAMES == len(names._checked)
