"""HTTP APIs of reward model servers other than vLLM: TEI, OpenRLHF's `serve_rm`, and SGLang.

These servers receive a sample as one text. The requests follow the source code of TEI (Text Embeddings Inference) 1.8,
OpenRLHF 0.8 and SGLang 0.5, and are tested against fake servers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rewardstack.errors import ReplyError

TOO_LONG = ("must have less than", "longer than the model's context", "exceeds the maximum allowed length")
"""Phrases in the errors of TEI and SGLang about a text that is too long; `serve_rm` truncates such a text."""
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
            outputs = [float(output) for output in self.outputs(json.loads(data))]
            if not outputs or not all(map(math.isfinite, outputs)):
                raise ValueError("no finite numbers")
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise ReplyError(f"not a valid reply to {self.path}: {error}") from None
        return outputs


def _read_tei_scores(reply: Any) -> list[float]:
    """Return the scores in the order of the model's outputs; TEI sorts its reply by score."""
    [classes] = reply
    if len(classes) == 1:
        return [classes[0]["score"]]
    by_number = {int(LABEL.fullmatch(output["label"])[1]): output["score"] for output in classes}  # type: ignore[index]
    return [by_number[number] for number in range(len(classes))]


APIS: Mapping[str, TextApi] = {
    "tei": TextApi(
        "/predict", lambda _, text: {"inputs": [[text]], "raw_scores": True, "truncate": False}, _read_tei_scores
    ),
    "openrlhf": TextApi("/get_reward", lambda _, text: {"query": [text]}, lambda reply: reply["rewards"]),
    # `/v1/embeddings` returns the logit. `/v1/classify` cannot be used: it returns the softmax of the logit, and the
    # softmax of a single number is always 1.
    "sglang": TextApi(
        "/v1/embeddings",
        lambda model, text: {"model": model or "default", "input": text},
        lambda reply: reply["data"][0]["embedding"][-1:],
    ),
}
"""Maps each value of a reward model's field `api` in the routes file, except `vllm`, to the API that it selects."""


def render(template: str, problem: str, candidate: str) -> str:
    """Return a template with its placeholders replaced; placeholders in `problem` and `candidate` are not replaced."""
    values = {"PROBLEM": problem, "CANDIDATE_SOLUTION": candidate}
    return PLACEHOLDER.sub(lambda outputs: values[outputs[1]], template)
