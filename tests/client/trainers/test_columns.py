"""What TRL and ms-swift hand to a reward function, read as requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack.errors import RequestError
from rewardstack.score import Request
from rewardstack.settings_table import TRANSCRIPTS as SETTINGS
from rewardstack.trainers.columns import TEMPLATE_TOKENS, Columns, as_names, as_options, get_column, transcript_option
from rewardstack_verifier.transcript import FAMILIES, TRANSCRIPTS

CASES = json.loads((Path(__file__).resolve().parents[2] / "cases/trainer_columns.json").read_text())
NOTHING: dict[str, Any] = {"data_source": None, "reference": None, "fields": (), "extra_info": {}, "remedy": "do this"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_columns(case: dict[str, Any]) -> None:
    """A row's columns become its request, or the one that is missing is named with the remedy."""
    columns = Columns(**{**NOTHING, **case["columns"]})
    given = {name: [value, value] for name, value in case["row"].items()}

    def read() -> list[Request]:
        return columns.requests([case["prompt"]] * 2, [case["completion"]] * 2, given)

    if "refused" in case:
        with pytest.raises(RequestError, match=case["refused"]):
            read()
    else:
        assert [Request(*case["request"])] * 2 == read()


@pytest.mark.parametrize("name", ["answer", "extra_info", "most", "prompts"])
def test_a_column_of_another_length(name: str) -> None:
    """A column that has not one value for each completion is named, with both lengths."""
    columns = Columns("gsm8k", "answer", ("most",), {}, "do this")
    given: dict[str, Any] = {"answer": ["1", "1"], "extra_info": [None, None], "most": [1, 1], "prompts": ["p", "p"]}
    given[name] = given[name] * 2
    prompts = given.pop("prompts")

    with pytest.raises(RequestError, match=f"^{name}: 4 values for 2 samples$"):
        columns.requests(prompts, ["a", "b"], given)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: as_names("most", "columns"), "columns: expected a list of names, got 'most'; put it into a list"),
        (lambda: as_names(None, "columns"), "columns: expected a list of names, got None"),  # type: ignore[arg-type]
        (lambda: as_options("x", "options"), "options: expected fields of extra_info such as "),  # type: ignore[arg-type]
        (lambda: get_column("12", 1, "labels"), "labels: expected a list with one value per sample, got str"),
        (lambda: get_column(7, 1, "labels"), "labels: expected a list with one value per sample, got int"),  # type: ignore[arg-type]
        (
            lambda: Columns("math", ["answer"], (), {}).requests(["p"], ["a"], {}),  # type: ignore[arg-type]
            "reference: expected the name of a column, got ['answer']; pass a string",
        ),
    ],
)
def test_arguments_of_the_wrong_type(read: Callable[[], object], message: str) -> None:
    """An argument of the wrong type is an error that names it and what it should be."""
    with pytest.raises(RequestError, match=f"^{re.escape(message)}"):
        read()


def test_tokens() -> None:
    """The trainer's own count of tokens is a field of each row, before a column of that name; none for no ids."""
    columns = Columns("overlong", None, (), {}, "do this")
    given = {"extra_info": [{"completion_tokens": 99}, None]}
    requests = columns.requests(["p", "p"], ["a", "b"], given, [[1, 2, 3], None])
    assert [{"question": "p", "completion_tokens": 3}, {"question": "p"}] == [one.extra_info for one in requests]


def test_transcript_option() -> None:
    """The family is that of the tokenizer's chat template; there is one for each family that can be named."""
    assert transcript_option(None) == {}
    assert transcript_option(SimpleNamespace(chat_template=None)) == {"transcript": "none"}
    for template, family in {
        "{{ '<|im_start|>' + message.role }}": "chatml",
        "{{ bos_token }}[INST] {{ content }} [/INST]": "mistral",
        "{{ '<|im_user|>user<|im_middle|>' }}": "kimi",
        "{{ message.content }}": "auto",
    }.items():
        assert transcript_option(SimpleNamespace(chat_template=template)) == {"transcript": family}
    assert sorted(TEMPLATE_TOKENS.values()) == sorted(FAMILIES)
    assert SETTINGS == TRANSCRIPTS
