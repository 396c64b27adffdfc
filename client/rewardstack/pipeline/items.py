"""Validates requests and converts them to items; selects each sample's references."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rewardstack.cache.key import CACHE_ENABLED
from rewardstack.cause import Cause
from rewardstack.core.deadline import TIMEOUT_RANGE, read_timeout
from rewardstack.core.fields import LONGEST, OPTIONS, Fields, value_error
from rewardstack.core.json_types import TOO_DEEP, is_array, is_deep, plain, shorten
from rewardstack.core.messages import TRANSCRIPT, Chat, UnknownResponse, is_conversation, response_text, to_chat
from rewardstack.core.steps import drop_none
from rewardstack.core.wire import Record
from rewardstack.errors import RequestError
from rewardstack.score import NO_OPTIONS, Item, Request, Score
from rewardstack_verifier.transcript import AUTO, TRANSCRIPTS, Turn, split_turns, without_last_tokens

TARGET = "target"
"""The field that has the reference if the ground truth is an object."""
GROUP_SIZE = "group_size"
"""The field with the number of samples in the sample's group, for a judge that compares the group."""
SECRET_SUFFIXES = ("api_key", "server_url")
"""Traces omit fields of `extra_info` with these suffixes, which are API keys or URLs; a URL may contain a key."""


def read_request(
    request: Request, *, is_single_reference: bool = False, transcript: str = AUTO
) -> tuple[Item, float | None]:
    """Return the request as an item, and the request's timeout in seconds or None.

    Args:
        request: the sample.
        is_single_reference: whether a ground truth that is a list is one reference rather than several.
        transcript: how to split a response that is a string, if `extra_info` does not say it; see `split_turns`.

    Raises:
        RequestError: the request is malformed; the error names the field.
    """
    extra = NO_OPTIONS if request.extra_info is None else request.extra_info
    if not isinstance(extra, Mapping):
        raise RequestError(f"extra_info: expected an object, got {type(extra).__name__}", OPTIONS)
    solution, truth = request.solution_str, request.ground_truth
    if any(is_deep(value) for value in (solution, truth, extra or None) if not isinstance(value, str)):
        raise RequestError(TOO_DEEP, cause=Cause.TOO_LONG)
    timeout = _timeout(extra) if "timeout" in extra else None
    if CACHE_ENABLED in extra:
        Fields(extra).flag(CACHE_ENABLED, True)
    if Fields(extra).get(TRANSCRIPT) is not None:
        transcript = Fields(extra).choice(TRANSCRIPT, TRANSCRIPTS)
    if not isinstance(solution, str) and is_conversation(solution):
        solution = to_chat(solution)
    references = (
        parse_single_reference(truth) if is_single_reference else filter_references(parse_references(truth), extra)
    )
    last, messages = _split(solution, transcript)
    return Item(last, references, extra, request.data_source, messages, transcript), timeout


def _split(solution: Any, transcript: str) -> tuple[Turn, Any]:
    """Return the policy's last turn, and the whole response; None for the whole response if it is the last turn."""
    if isinstance(solution, str):
        split = split_turns(solution, transcript)
        return split.last, None if len(split.last) == len(solution) else split
    return Turn(without_last_tokens(_last_message(solution))), solution


def is_single(item: Item) -> bool:
    """Return whether the item is the only one of its group (`group_size` is 1)."""
    return Fields(item.extra).get(GROUP_SIZE) == 1


def _last_message(solution: Any) -> str:
    """Return the text of the last assistant message; raise RequestError if there is no such text."""
    text = response_text(solution)
    if text is not None:
        return text
    if isinstance(solution, UnknownResponse):
        raise RequestError(solution.reason, "query")
    if solution is None:
        raise RequestError("solution_str: missing; expected the response as a string or chat messages", "solution_str")
    kind = "chat messages" if isinstance(solution, Chat) else type(solution).__name__
    if isinstance(solution, (list, tuple, Mapping)) or is_array(solution):
        kind += " whose last assistant message has no text; use messages like {'role': 'assistant', 'content': '…'}"
    raise RequestError(f"solution_str: expected a string or chat messages, got {kind}", "solution_str")


def _timeout(extra: Mapping[str, Any]) -> float | None:
    timeout = plain(extra["timeout"])
    if timeout is None:
        return None
    seconds = read_timeout(timeout)
    if seconds is None:
        raise value_error("timeout", TIMEOUT_RANGE, timeout)
    return seconds


def raise_if_all_invalid(scores: Sequence[Score]) -> None:
    """Raise RequestError if there are several samples and the same field of `extra_info` is invalid in all of them."""
    if len(scores) < 2 or not scores[0].field.startswith(OPTIONS):
        return
    first = scores[0]
    if all(score.field == first.field for score in scores):
        raise RequestError(
            f"{first.reason} (the first of {len(scores)} samples; all have this error)", first.field, cause=first.cause
        )


def has_same_option(items: Sequence[Item], field: str) -> bool:
    """Return whether the option `field`, such as `extra_info.temperature`, has the same value in all items."""
    name = field.removeprefix(f"{OPTIONS}.").partition(".")[0]
    if name == field or not items:
        return False
    first = plain(items[0].extra.get(name))
    return all(plain(item.extra.get(name)) == first for item in items)


def parse_references(ground_truth: Any, field: str = "ground_truth") -> tuple[str, ...]:
    """Return the references in a `ground_truth`.

    Args:
        ground_truth: a string, a number, a list (or NumPy array) of strings and numbers, or an object that has one of
            these as `target`, as in data sets of verl and SkyRL. None and NaN mean no reference.
        field: name of the argument or field, for errors.

    Returns:
        The references in order, without blank ones. Numbers are formatted with `str`.

    Raises:
        RequestError: `ground_truth` contains a value of another type, or is an object without `target`.
    """
    if isinstance(ground_truth, str):
        return (ground_truth,) if ground_truth.strip() else ()
    value = plain(ground_truth)
    if isinstance(value, dict):
        value = _target(value, field)
    if value is None:
        return ()
    if not isinstance(value, list):
        value = [value]
    return tuple(text for element in value if (text := _text(element, field)).strip())


def parse_single_reference(ground_truth: Any, field: str = "ground_truth") -> tuple[str, ...]:
    """Return a ground truth as a single reference: a string unchanged, anything else as JSON; empty if there is none.

    If the ground truth is a list with one string, and this string looks like a JSON object or array, the string is the
    reference: data sets with a list column have such lists.

    Raises:
        RequestError: `ground_truth` is not JSON serializable.
    """
    value = plain(ground_truth)
    is_text = isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)
    if is_text and value[0].lstrip()[:1] in ("{", "["):
        value = value[0]
    if value is None or value == [] or (isinstance(value, float) and math.isnan(value)):
        return ()
    if not isinstance(value, str):
        try:
            value = json.dumps(value)
        except (TypeError, ValueError) as error:
            raise RequestError(f"{field}: {error}; use JSON types only", field) from error
    return (value,) if value.strip() else ()


def _target(value: Mapping[str, Any], field: str) -> Any:
    if TARGET in value:
        return value[TARGET]
    names = ", ".join(repr(name[:LONGEST]) for name in [*value][:5]) or "no field"
    remedy = (
        f"an object needs the field {TARGET!r}, but this object has {names}; put the reference into {TARGET!r}, "
        "or pass it without an object"
    )
    raise RequestError(f"{field}: expected a string, a list of strings or {{{TARGET!r}: …}}: {remedy}", field)


def _text(value: Any, field: str) -> str:
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise RequestError(f"{field}: expected a string or a list of strings, got {type(value).__name__}", field)
    try:
        return str(value)
    except ValueError as error:
        raise RequestError(f"{field}: {error}", field) from error


def filter_references(references: tuple[str, ...], extra: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the references that pass the filters of `extra_info`; a filter that matches no reference is ignored.

    Args:
        references: all of the sample's references.
        extra: the sample's `extra_info`. `target_gt` (a string or a list of strings) keeps the references that are
            equal to one of its strings. Then, if `filter_gt_by_prompt_token` is true, the references that contain the
            last word of `prompt` are kept. Words are separated by whitespace; case is ignored.

    Raises:
        RequestError: `target_gt` contains values other than strings and numbers.
    """
    if extra:
        for keep_matching in FILTERS.values():
            references = keep_matching(references, extra)
    return references


def _by_target(references: tuple[str, ...], extra: Mapping[str, Any]) -> tuple[str, ...]:
    if "target_gt" not in extra:
        return references
    wanted = set(parse_references(extra["target_gt"], "extra_info.target_gt"))
    return tuple(reference for reference in references if reference in wanted) or references


def _by_prompt_token(references: tuple[str, ...], extra: Mapping[str, Any]) -> tuple[str, ...]:
    if not (extra.get("filter_gt_by_prompt_token") and isinstance(extra.get("prompt"), str)):
        return references
    last = extra["prompt"].lower().split()[-1:]
    return tuple(reference for reference in references if last and last[0] in reference.lower().split()) or references


FILTERS: Mapping[str, Callable[[tuple[str, ...], Mapping[str, Any]], tuple[str, ...]]] = {
    "target_gt": _by_target,
    "filter_gt_by_prompt_token": _by_prompt_token,
}
"""The filters of references, in the order in which they apply. A key is the field of `extra_info` that enables the
filter."""


def describe_request(
    request: Request, item: Item, timeout: float | None, *, is_single_reference: bool = False
) -> Record:
    """Return the facts of a request for a trace: its fields, and the references that pass each filter."""
    truth = plain(request.ground_truth)
    if is_single_reference:
        return {
            "solution": item.solution,
            **drop_none({"extra_info": _public_options(item) or None, "timeout": timeout}),
        }
    references = parse_references(truth)
    truth = truth[TARGET] if isinstance(truth, dict) else truth
    count = len(truth) if isinstance(truth, list) else int(truth is not None)
    facts: Record = {"solution": item.solution, "references": list(references)}
    if count > len(references):
        facts["blank references"] = count - len(references)
    for name, keep_matching in FILTERS.items():
        if name in item.extra:
            references = keep_matching(references, item.extra)
            facts[f"left by {name}"] = list(references)
    return {**facts, **drop_none({"extra_info": _public_options(item) or None, "timeout": timeout})}


def _public_options(item: Item) -> Record:
    return {name: shorten(value) for name, value in item.extra.items() if not str(name).endswith(SECRET_SUFFIXES)}
