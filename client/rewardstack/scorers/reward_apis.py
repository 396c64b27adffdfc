"""HTTP APIs of reward model servers other than vLLM: TEI, OpenRLHF's `serve_rm`, and SGLang.

These servers receive a sample as one text. The requests follow the source code of TEI (Text Embeddings Inference) 1.8,
OpenRLHF 0.8 and SGLang 0.5, and are tested against fake servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rewardstack.core.json_types import is_finite, shorten
from rewardstack.errors import ReplyError

PLACEHOLDER = re.compile(r"\{(PROBLEM|CANDIDATE_SOLUTION)\}")
LABEL = re.compile(r"LABEL_(\d+)")


@dataclass(frozen=True, slots=True)
class TextApi:
    """The API of one kind of server.

    Args:
        path: the path below the base URL.
        body: returns the request body for a model name and a text.
        outputs: returns the model's outputs from a parsed reply; raises LookupError, TypeError or ValueError if the
            reply is malformed.
    """

    path: str
    body: Callable[[str, str], Mapping[str, Any]]
    outputs: Callable[[Any], list[float]]

    def read(self, data: bytes) -> list[float]:
        """Return the model's raw outputs from the body of a reply.

        Raises:
            ReplyError: the reply is malformed, has no outputs, or has outputs that are not finite numbers.
        """
        try:
            outputs = read_numbers(self.outputs(json.loads(data)))
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise ReplyError(f"not a valid reply to {self.path}: {error}") from None
        return outputs


def read_numbers(values: Any) -> list[float]:
    """Return a list of finite numbers; raise ValueError if `values` is anything else, such as a list of strings."""
    if not isinstance(values, list) or not values:
        raise ValueError(f"expected a list of numbers, got {shorten(values)}")
    for value in values:
        if not is_finite(value):
            raise ValueError(f"expected a number, got {shorten(value)}")
    return [float(value) for value in values]


def _only(rows: Any, what: str) -> Any:
    """Return the only element of a list; raise ValueError if there is another number of elements."""
    if not isinstance(rows, list) or len(rows) != 1:
        count = len(rows) if isinstance(rows, list) else shorten(rows)
        raise ValueError(f"expected {what} for one text, got {count}")
    return rows[0]


def _read_tei_scores(reply: Any) -> list[Any]:
    """Return the scores in the order of the model's outputs; TEI sorts its reply by score.

    Before version 1.3, the reply to one text is not in a list of its own.
    """
    is_flat = isinstance(reply, list) and bool(reply) and isinstance(reply[0], dict)
    classes = reply if is_flat else _only(reply, "one list of labels")
    if len(classes) == 1:
        return [classes[0]["score"]]
    numbers = [LABEL.fullmatch(str(output["label"])) for output in classes]
    if not all(numbers):
        names = ", ".join(str(output["label"])[:40] for output in classes)
        raise ValueError(
            f"the labels {names} have names, so their order is unknown; serve a model with LABEL_0, LABEL_1"
        )
    by_number = {int(number[1]): output["score"] for number, output in zip(numbers, classes, strict=True) if number}
    return [by_number[number] for number in range(len(classes))]


APIS: Mapping[str, TextApi] = {
    "tei": TextApi(
        "/predict", lambda _, text: {"inputs": [[text]], "raw_scores": True, "truncate": False}, _read_tei_scores
    ),
    "openrlhf": TextApi(
        "/get_reward", lambda _, text: {"query": [text]}, lambda reply: [_only(reply["rewards"], "one reward")]
    ),
    # `/v1/embeddings` returns the logits. `/v1/classify` cannot be used: it returns the softmax of the logit, and the
    # softmax of a single number is always 1.
    "sglang": TextApi(
        "/v1/embeddings",
        lambda model, text: {"model": model or "default", "input": text},
        lambda reply: _only(reply["data"], "one row")["embedding"],
    ),
}
"""Maps each value of a reward model's field `api` in the routes file, except `vllm`, to the API that it selects."""


def render(template: str, problem: str, candidate: str) -> str:
    """Return a template with its placeholders replaced; placeholders in `problem` and `candidate` are not replaced."""
    values = {"PROBLEM": problem, "CANDIDATE_SOLUTION": candidate}
    return PLACEHOLDER.sub(lambda outputs: values[outputs[1]], template)
