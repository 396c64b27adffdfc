"""What is asked of the judge: by whom, how, how often, and what becomes of several answers."""

from __future__ import annotations

import importlib.util
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import rewardstack.llm_judge_remote
from rewardstack import Request, compute_score, compute_score_batched, score
from tests.client.judge.conftest import JUDGE, JudgeClock, asked, sample
from tests.support.servers import FaultServer
from tests.support.waiting import eventually

SERVED = [{"id": "small", "root": "/m/small"}]
TWO = [*SERVED, {"id": "large", "root": "/m/large"}]


def test_defaults(judge: FaultServer) -> None:
    """Nothing said, the original's settings hold, thinking is off, and the reply is held to its form."""
    score([sample()])
    (body,) = asked(judge)
    assert (0.7, 0.8, 512) == (body["temperature"], body["top_p"], body["max_tokens"])
    assert {"enable_thinking": False} == body["chat_template_kwargs"]
    assert {"regex": r"REWARD: (0\.[0-9]{3}|1\.000)"} == body["structured_outputs"]
    assert not {"seed", "thinking_token_budget", "guided_json", "n"} & set(body)


def test_a_missing_problem_is_warned_of(judge: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """A sample without a problem is judged, and one warning says that the judge does not see the task."""
    from rewardstack.scorers.judge import plan

    plan._warn_of_missing_problem.cache_clear()
    scores = score([Request(JUDGE, text, "42") for text in ("one", "two")])
    assert ["ok", "ok"] == [one.status for one in scores]
    assert 1 == caplog.text.count("extra_info has no problem, so the judge does not see the task")


def test_sampling_options(judge: FaultServer) -> None:
    """What `extra_info` says of sampling is sent; NumPy's numbers and whole floats will do."""
    import numpy as np

    options = {"temperature": np.float64(0.1), "top_p": 0.5, "max_new_tokens": 64.0, "seed": np.int64(7)}
    assert "ok" == score([sample(**options)])[0].status
    (body,) = asked(judge)
    assert (0.1, 0.5, 64, 7) == (body["temperature"], body["top_p"], body["max_tokens"], body["seed"])


@pytest.mark.parametrize("template", ["detailed", "Rate {CANDIDATE_SOLUTION}.\nREWARD: <score>"])
def test_free_form(judge: FaultServer, template: str) -> None:
    """With the detailed template and with custom ones the judge replies freely: no output format is enforced."""
    score([sample(prompt_template=template)])
    assert "structured_outputs" not in asked(judge)[0]


def test_thinking(judge: FaultServer) -> None:
    """Thinking is asked for with a budget beside the reply's, and without a form."""
    judge.set(content="REWARD: 0.500", reasoning="Hm. REWARD: 1.000")
    (one,) = score([sample(enable_thinking=True, thinking_budget=1000)])
    (body,) = asked(judge)
    assert (0.5, 1512, 1000) == (one.value, body["max_tokens"], body["thinking_token_budget"])
    assert {"enable_thinking": True} == body["chat_template_kwargs"]
    assert "structured_outputs" not in body


def test_server_without_thinking_budget(judge: FaultServer) -> None:
    """A server that refuses the budget is asked once more without it, and from then on without it."""
    judge.set(ignores=["thinking_token_budget"])
    first = score([sample("first", enable_thinking=True)])
    second = score([sample("second", enable_thinking=True)])
    assert ["ok", "ok"] == [one.status for one in first + second]
    assert [True, False, False] == ["thinking_token_budget" in body for body in asked(judge)]


@pytest.mark.parametrize(
    ("extra", "variable", "served", "model"),
    [
        ({"model_name": "a", "model": "b"}, "c", SERVED, "a"),
        ({"model": "b"}, "c", SERVED, "b"),
        ({}, "c", SERVED, "c"),
        ({}, "", SERVED, "small"),
        ({}, "", TWO, "Qwen/Qwen3-32B"),
        ({}, "", [], "Qwen/Qwen3-32B"),
    ],
)
def test_model(
    judge: FaultServer, monkeypatch: pytest.MonkeyPatch, extra: Any, variable: str, served: Any, model: str
) -> None:
    """The model is the sample's, else the environment's, else the only one served, else the original's."""
    judge.set(models=served)
    monkeypatch.setenv("LLM_JUDGE_MODEL", variable)
    score([sample(**extra)])
    assert model == asked(judge)[0]["model"]


def test_server_that_does_not_tell_its_models(judge: FaultServer) -> None:
    """It is asked all the same, after a request that shows what it takes; only its verdicts are not kept."""
    judge.set(refuse="/v1/models")
    assert [False, False] == [score([sample(temperature=0)])[0].cached for _ in range(2)]
    assert ["Qwen/Qwen3-32B"] * 3 == [body["model"] for body in asked(judge)]


def test_key_of_the_environment(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's key goes to the environment's server, and not to one that a sample names."""
    monkeypatch.setenv("LLM_JUDGE_SERVER_API_KEY", "secret")
    score([sample("one")])
    alias = judge.url.replace("127.0.0.1", "localhost")
    score([sample("two", server_url=alias), sample("three", server_url=alias, api_key="own")])
    keys = [body["headers"].get("Authorization", "none") for body in asked(judge)]
    assert ["Bearer own", "Bearer secret", "none"] == sorted(keys)


def test_best_reference(judge: FaultServer) -> None:
    """Each reference is a request of its own, and the best verdict counts."""
    judge.set(replies=["REWARD: 0.100", "REWARD: 0.800", "REWARD: 0.300"])
    assert 0.8 == compute_score(JUDGE, "a", ["1", "2", "3"], {"problem": "p"})
    assert 3 == len(asked(judge))


def test_filtered_references(judge: FaultServer) -> None:
    """The filters of `extra_info` choose the references that are asked for."""
    score([sample("a", ["x", "the answer is 7"], filter_gt_by_prompt_token=True, prompt="The answer IS")])
    (body,) = asked(judge)
    assert "the answer is 7" in body["messages"][1]["content"]


def test_missing_reference(judge: FaultServer) -> None:
    """A template that shows a reference has none to show: unscored; another is used without one."""
    own = "Rate {CANDIDATE_SOLUTION}.\nREWARD: <score>"
    without, with_own = score([sample("a", None), sample("a", None, prompt_template=own)])
    assert ("unscored", "ok") == (without.status, with_own.status)
    assert "ground_truth" in without.reason


def test_empty_candidate() -> None:
    """An empty answer scores 0 without any request to the judge, not even for its models."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        (one,) = score([sample(" \n", server_url=f"http://127.0.0.1:{silent.getsockname()[1]}")])
        assert (one.value, one.status) == (0.0, "ok")
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_batch_is_each_with_its_own(judge: FaultServer) -> None:
    """In a batch each sample has its own reference, problem and options."""
    extras = [{"problem": "p1", "temperature": 0.1}, {"problem": "p2"}, None]
    values = compute_score_batched(
        [JUDGE, "llm_judge_remote_b", "llm_judge_remote"], ["s1", "s2", "s3"], ["r1", "r2", "r3"], extras
    )
    assert len(values) == 3
    shown = {body["messages"][1]["content"].splitlines()[-2]: body for body in asked(judge)}
    for number, temperature in (("1", 0.1), ("2", 0.7)):
        text = shown[f"s{number}"]["messages"][1]["content"]
        assert f"\nr{number}\n" in text and f"\np{number}\n" in text
        assert temperature == shown[f"s{number}"]["temperature"]


@pytest.mark.parametrize(("how", "value"), [("mean", 0.44), ("median", 0.5), ("majority", 0.2)])
def test_votes(judge: FaultServer, how: str, value: float) -> None:
    """Several verdicts on one sample become one by mean, median or majority; each has a seed of its own."""
    judge.set(replies=[f"REWARD: {number}" for number in ("0.200", "0.500", "0.200", "0.600", "0.700")])
    (one,) = score([sample(num_samples=5, aggregate=how, seed=10)])
    assert (value, "ok") == (pytest.approx(one.value), one.status)
    assert [10, 11, 12, 13, 14] == sorted(body["seed"] for body in asked(judge))


def test_lost_votes(judge: FaultServer) -> None:
    """More than half of the votes decide, and the reason says how many; fewer do not."""
    judge.set(replies=["REWARD: 0.4", "nothing", "REWARD: 0.6"], content="nothing")
    (one,) = score([sample("most", num_samples=3)])
    assert (0.5, "ok", "2 of 3 votes") == (pytest.approx(one.value), one.status, one.reason)
    judge.set(replies=["REWARD: 0.4", "nothing"])
    (one,) = score([sample("half", num_samples=2)])
    assert ("failed", 0.0) == (one.status, one.value)


def test_batch_size(judge: FaultServer) -> None:
    """`batch_size` bounds how many such samples are in flight; without it all are."""
    judge.set(delay=0.1, together=3)
    score([sample(f"bounded {at}", batch_size=3) for at in range(12)])
    assert 3 == judge.stats()["max_concurrent"]
    judge.set(delay=0.0, together=91)
    score([sample(f"free {at}", timeout=30) for at in range(100)])
    assert 90 < judge.stats()["max_concurrent"]


def test_waiting_for_a_turn_is_no_delay(judge: FaultServer, clock: JudgeClock) -> None:
    """A sample's time does not run out while it waits for others of its batch that are being answered."""
    judge.set(held=0)
    with ThreadPoolExecutor(1) as thread:
        scoring = thread.submit(score, [sample(f"in turn {at}", batch_size=1, timeout=60) for at in range(6)])
        for number in range(1, 7):
            eventually(lambda number=number: number == len(asked(judge)))  # type: ignore[misc]
            clock.forward(20)
            judge.set(held=number)
        assert {"ok"} == {one.status for one in scoring.result()}


def test_samples_of_one_problem_are_sent_together(judge: FaultServer) -> None:
    """However a batch is mixed, samples of one problem follow each other, with a header that holds them together."""
    mixed = [sample(f"s{at}", problem=f"p{at % 4}", batch_size=1) for at in range(16)]
    score(mixed)
    problems = [body["messages"][1]["content"].splitlines()[9] for body in asked(judge)]
    assert ["p0"] * 4 + ["p1"] * 4 + ["p2"] * 4 + ["p3"] * 4 == problems
    tags = [body["headers"]["X-Prompt-Affinity"] for body in asked(judge)]
    assert 4 == len(set(tags)) and tags == sorted(tags, key=tags.index)


def test_file_for_trainers(judge: FaultServer, tmp_path: Path) -> None:
    """`llm_judge_remote.py` can be loaded by its path alone, and ignores `data_source`."""
    path = tmp_path / "my_judge.py"
    path.write_text(Path(rewardstack.llm_judge_remote.__file__).read_text())
    spec = importlib.util.spec_from_file_location("custom_module", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    judge.set(content="REWARD: 0.250")
    assert 0.25 == module.compute_score("no/route", "a", "b", {"problem": "p"})
    assert 0.25 == module.compute_score(solution_str="a", ground_truth="b")
    assert [0.25] * 2 == module.compute_score_batched(["x", "y"], ["a", "b"], ["c", "d"], [{}, None])
    details = module.compute_score(data_sources=["x"], solution_strs=["a"], ground_truths=["b"], details=True)
    assert 1.0 == details[0]["ok"]


def test_candidate_beyond_the_context(judge: FaultServer) -> None:
    """A request that does not fit is the candidate's fault where it is most of the request, else the judge's."""
    message = {"error": {"message": "This model's maximum context length is 4096 tokens."}}
    judge.set(status=400, error=message)
    long, short = score([sample("x" * 9000), sample("x")])
    assert (0.0, "ok") == (long.value, long.status) and "longer than the judge's context" in long.reason
    assert "failed" == short.status and "raise the judge's MAX_MODEL_LEN" in short.reason
    for extra in ({"max_new_tokens": 4096}, {"enable_thinking": True}, {"system_prompt": "Be strict. " * 900}):
        (one,) = score([sample("x" * 9000, **extra)])
        assert "failed" == one.status and "lower max_new_tokens" in one.reason


def test_model_that_is_not_served(judge: FaultServer) -> None:
    """The failure names what the judge serves."""
    judge.set(status=404)
    (one,) = score([sample(model="other")])
    assert "failed" == one.status and one.reason.endswith("set LLM_JUDGE_MODEL or model_name to one of: small")


def test_body_is_json(judge: FaultServer) -> None:
    """Texts of any kind arrive as they were, lone surrogates as question marks; control characters do not."""
    text = 'quote " backslash \\ newline \n tab \t nul \x00 emoji \U0001f600 \u2028 \ud800'
    assert "ok" == score([Request(JUDGE, text, "1", {"problem": "p"})])[0].status
    shown = asked(judge)[0]["messages"][1]["content"]
    assert text.replace("\ud800", "?").replace("\x00", "") in json.loads(json.dumps(shown))
