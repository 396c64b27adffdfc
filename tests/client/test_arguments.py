"""The arguments of `compute_score`, in every form in which trainers give them."""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np
import pytest

from rewardstack import Request, acompute_score, acompute_score_batched, compute_score, compute_score_batched, score
from rewardstack.errors import RequestError, UnknownSourceError
from rewardstack.pipeline.arguments import read_call
from tests.support.servers import FaultServer

NONE = (None, None, None, None)
SOURCES, SOLUTIONS, TRUTHS, EXTRAS = ["math", "gsm8k"], ["a", "b"], ["1", ["2", "3"]], [{"x": 1}, None]
BATCH = [Request("math", "a", "1", {"x": 1}), Request("gsm8k", "b", ["2", "3"], None)]


def array(values: list[Any]) -> np.ndarray:
    """A NumPy array of objects, as pandas and verl's batches have them."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        (NONE, (SOURCES, SOLUTIONS, TRUTHS, EXTRAS)),
        (NONE, (tuple(SOURCES), tuple(SOLUTIONS), tuple(TRUTHS), tuple(EXTRAS))),
        (NONE, (array(SOURCES), array(SOLUTIONS), array(TRUTHS), array(EXTRAS))),
        (NONE, (np.array(SOURCES), np.array(SOLUTIONS), array(TRUTHS), array(EXTRAS))),
        ((SOURCES, SOLUTIONS, TRUTHS, EXTRAS), NONE),
        ((array(SOURCES), array(SOLUTIONS), array(TRUTHS), array(EXTRAS)), NONE),
        ((SOURCES, None, None, EXTRAS), (None, SOLUTIONS, TRUTHS, None)),
    ],
    ids=["lists", "tuples", "arrays", "arrays of text", "lists in the singular", "arrays in the singular", "mixed"],
)
def test_batch(singular: tuple[Any, ...], plural: tuple[Any, ...]) -> None:
    """Plural arguments, or lists in the singular ones, are a batch: one request a sample, each with its own fields."""
    call = read_call(singular, plural, {})
    assert (BATCH, False) == (call.requests, call.single)


@pytest.mark.parametrize("ground_truth", [None, "1", ["1", "2"], np.array(["1", "2"])], ids=repr)
def test_single(ground_truth: Any) -> None:
    """Singular arguments are one sample, whatever its references come in."""
    call = read_call(("math", "a", ground_truth, {"x": 1}), NONE, {})
    assert (1, True) == (len(call.requests), call.single)
    assert ground_truth is call.requests[0].ground_truth


def test_what_a_batch_shares() -> None:
    """One data source and one `extra_info` hold for the whole batch; no ground truths mean none for any."""
    call = read_call(NONE, ("math", SOLUTIONS, None, {"x": 1}), {})
    assert [Request("math", "a", None, {"x": 1}), Request("math", "b", None, {"x": 1})] == call.requests


def test_empty_batch() -> None:
    """A batch of nothing is an empty list of rewards."""
    assert [] == compute_score_batched([], [])
    assert [] == compute_score(solution_strs=np.array([]), data_sources="math")


@pytest.mark.parametrize(
    ("plural", "field", "message"),
    [
        ((["math"], SOLUTIONS, None, None), "data_sources", "expected 2 values, one per solution, got 1"),
        ((None, SOLUTIONS, None, None), "data_sources", "expected a list of 2, got NoneType"),
        (("math", SOLUTIONS, ["1"], None), "ground_truths", "expected 2 values, one per solution, got 1"),
        (("math", SOLUTIONS, "12", None), "ground_truths", "expected a list of 2, got str; pass one value per sol"),
        (
            ("math", SOLUTIONS, np.array(["1", "2", "3"]), None),
            "ground_truths",
            "expected 2 values, one per solution, got 3",
        ),
        (("math", SOLUTIONS, None, [None]), "extra_infos", "expected 2 values, one per solution, got 1"),
        (("math", SOLUTIONS, None, "x"), "extra_infos", "expected a list of 2, got str"),
        (("math", None, ["1"], None), "solution_strs", "expected a list of strings, missing"),
        (("math", "ab", ["1", "2"], None), "solution_strs", "expected a list of strings, got str"),
    ],
)
def test_lengths(plural: tuple[Any, ...], field: str, message: str) -> None:
    """An argument that does not fit the number of solutions is named, with both numbers."""
    with pytest.raises(RequestError, match=f"^{field}: {message}") as caught:
        read_call(NONE, plural, {})
    assert field == caught.value.field


@pytest.mark.parametrize("source", [None, "", 7, ["math"]], ids=repr)
def test_data_source_of_another_kind(source: Any) -> None:
    """What cannot name a route is refused as such."""
    message = f"data_source: expected a name of a route such as 'gsm8k', got {source!r}"
    with pytest.raises(UnknownSourceError, match=f"^{re.escape(message)}$"):
        compute_score(source, "a", "1")


@pytest.mark.parametrize(
    ("requests", "got"),
    [
        (None, "NoneType"),
        (Request("math", "a"), "Request"),
        ([{"data_source": "math", "solution_str": "a"}], "dict at position 0"),
        ([Request("math", "a"), ("math", "b")], "tuple at position 1"),
    ],
)
def test_no_requests(requests: Any, got: str) -> None:
    """`score` refuses what is not a list of requests, and says how to write one."""
    with pytest.raises(RequestError, match=f"^requests: expected a list of rewardstack.Request, got {got}; write "):
        score(requests)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"on_error": "ignore"}, "on_error"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": -1.0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"timeout": "5"}, "timeout"),
    ],
    ids=repr,
)
def test_malformed_options(options: dict[str, Any], field: str) -> None:
    """A policy that does not exist, or a timeout that is none, is refused by name, however one calls."""
    for call in (lambda: compute_score("math", "a", "1", **options), lambda: score([Request("math", "a")], **options)):
        with pytest.raises(RequestError, match=f"^{field}: ") as caught:
            call()
        assert field == caught.value.field


def test_arguments_of_trainers(caplog: pytest.LogCaptureFixture) -> None:
    """verl's own arguments are passed over in silence."""
    options = {"reward_router_address": "127.0.0.1:1", "reward_model_tokenizer": object(), "details": True}
    assert read_call(("math", "a", "1", None), NONE, options).details
    assert "" == caplog.text


@pytest.mark.parametrize(
    ("singular", "plural", "name", "suggestion"),
    [
        (("math", "a", "1", None), NONE, "weigth", ""),
        (("math", None, "1", None), NONE, "solution", "solution_str"),
        (("math", "a", None, None), NONE, "ground_truths_", "ground_truth"),
        (NONE, (["math"], ["a"], None, None), "ground_truts", "ground_truths"),
        (("math", "a", "1", None), NONE, "solutions", ""),
        (("math", "a", "1", None), NONE, "time_out", "timeout"),
    ],
)
def test_unknown_argument(
    singular: tuple[Any, ...], plural: tuple[Any, ...], name: str, suggestion: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An unknown argument has no effect and is logged once, with the missing argument that it resembles."""
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            read_call(singular, plural, {name: 2})
    meant = f"; did you mean {suggestion!r}?" if suggestion else ""
    assert [f"compute_score: the argument {name!r} is not known and has no effect{meant}"] == caplog.messages


async def test_four_doors(server: FaultServer) -> None:
    """The batch by name and the async twins give the same rewards as `compute_score`."""
    assert [1.0, 2.0] == compute_score("math", ["a", "bb"], ["1", "2"])
    assert [1.0, 2.0] == compute_score_batched(["math", "gsm8k"], ["a", "bb"], ["1", "2"], [None, None])
    assert [1.0, 2.0] == await acompute_score(data_sources="math", solution_strs=["a", "bb"])
    assert [1.0, 2.0] == await acompute_score_batched("math", ["a", "bb"], ["1", "2"])


def test_positional_call(server: FaultServer) -> None:
    """Four positional arguments give a float, which is what verl's `prime` manager needs."""
    reward = compute_score("math", "abc", "1", {})
    assert (3.0, float) == (reward, type(reward))


def test_verls_batch(server: FaultServer) -> None:
    """verl's batch manager hands over arrays and further keyword arguments, and gets a list of floats."""
    columns: dict[str, Any] = {
        "data_sources": array(SOURCES),
        "solution_strs": ["a", "bb"],
        "ground_truths": array(TRUTHS),
    }
    assert [1.0, 2.0] == compute_score_batched(**columns, extra_infos=array(EXTRAS), reward_router_address=None)
