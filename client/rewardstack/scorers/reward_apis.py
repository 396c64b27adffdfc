"""APIs of reward model servers that read one text: TEI's `/predict`, OpenRLHF's `serve_rm`, SGLang's `/v1/embeddings`.

They are written from the sources of TEI 1.8, OpenRLHF 0.8 and SGLang 0.5, and tested against scripted servers.
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
"""Phrases in the errors of TEI and SGLang about a text that is too long. `serve_rm` truncates."""
PLACEHOLDER = re.compile(r"\{(PROBLEM|CANDIDATE_SOLUTION)\}")
NUMBERED = re.compile(r"LABEL_(\d+)")


@dataclass(frozen=True, slots=True)
class TextApi:
    """One API.

    Args:
        path: below the base URL.
        body: makes the request from the model's name and the text.
        outputs: returns the outputs that a reply holds; raises LookupError, TypeError or ValueError if it holds none.
    """

    path: str
    body: Callable[[str, str], Mapping[str, Any]]
    outputs: Callable[[Any], list[float]]

    def read(self, data: bytes) -> list[float]:
        """Return the raw outputs of a reply.

        Raises:
            ReplyError: it holds none.
        """
        try:
            found = [float(one) for one in self.outputs(json.loads(data))]
            if not found or not all(map(math.isfinite, found)):
                raise ValueError("no finite numbers")
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise ReplyError(f"it is no reply of {self.path}: {error}") from None
        return found


def _of_predict(reply: Any) -> list[float]:
    """Return the scores of TEI in the order of the model's outputs; TEI sorts them by score."""
    [classes] = reply
    if len(classes) == 1:
        return [classes[0]["score"]]
    by_number = {int(NUMBERED.fullmatch(one["label"])[1]): one["score"] for one in classes}  # type: ignore[index]
    return [by_number[number] for number in range(len(classes))]


APIS: Mapping[str, TextApi] = {
    "tei": TextApi(
        "/predict", lambda _, text: {"inputs": [[text]], "raw_scores": True, "truncate": False}, _of_predict
    ),
    "openrlhf": TextApi("/get_reward", lambda _, text: {"query": [text]}, lambda reply: reply["rewards"]),
    # `/v1/classify` gives a softmax of one logit, which is always 1.
    "sglang": TextApi(
        "/v1/embeddings",
        lambda model, text: {"model": model or "default", "input": text},
        lambda reply: reply["data"][0]["embedding"][-1:],
    ),
}
"""By the value of the field `api`."""


def render(template: str, problem: str, candidate: str) -> str:
    """Return a template with its placeholders replaced in one pass, so that no text can contain one."""
    texts = {"PROBLEM": problem, "CANDIDATE_SOLUTION": candidate}
    return PLACEHOLDER.sub(lambda found: texts[found[1]], template)
