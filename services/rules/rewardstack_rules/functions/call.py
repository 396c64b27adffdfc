"""Call a reward function for one sample, with the values of its bound parameters."""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from rewardstack.cause import Cause
from rewardstack.core.messages import TRANSCRIPT, WHOLE_RESPONSE, Chat, to_chat
from rewardstack.errors import RequestError
from rewardstack_rules.functions.outcome import Outcome, Unscored
from rewardstack_rules.functions.results import as_outcome
from rewardstack_verifier.transcript import ASSISTANT, AUTO, REASONING, split_turns

MESSAGE_FIELDS = frozenset({"content", "role", "tool_calls"})
"""Fields of chat messages: a function whose code has one of these as a constant seems to read messages."""
ABSENT: Any = object()
"""Placeholder for a parameter's value if the sample has none."""
_WRONG_FORM = re.compile(
    r"string ind(?:ex|ices)|'(?:str|list)' object has no attribute|expected string or bytes"
    r'|not (?:"(?:str|list)"|list)'
)
"""Matches Python's errors for a function that expects chat messages and gets text, or the reverse."""


class Sample(NamedTuple):
    """The input of one call of a reward function.

    Args:
        response: the policy's text.
        reference: one of the sample's references; None if it has none.
        extra: the sample's `extra_info`.
        raw: the response as the trainer sent it: a string with all turns and their tokens, or chat messages.
        turns: all turns of the response as chat messages. They end with the last assistant turn if `raw` is a string.
        messages: whether completions and prompts are passed as chat messages, not as text.
    """

    response: str
    reference: str | None
    extra: Mapping[str, Any]
    raw: Any = ""
    turns: Chat = Chat()
    messages: bool = False


Getter = Callable[[Sample], Any]
"""Function that returns the value of a parameter for a sample, or `ABSENT`."""


class Parameter(NamedTuple):
    """A parameter of a reward function.

    Args:
        name: the parameter's name.
        get: returns the parameter's value for a sample.
        default: the value if `get` returns `ABSENT`; `ABSENT` to use the function's own default.
        as_list: whether the value is passed as a list with one element.
        by_position: whether the value is passed by position.
    """

    name: str
    get: Getter
    default: Any
    as_list: bool
    by_position: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A reward function with its bound parameters.

    Args:
        function: the function to call.
        parameters: the function's parameters, in the order of its signature.
        rest: returns the values of `**kwargs`; None if the function has no `**kwargs`.
        required: the names of the parameters that must have a value, each with the fields of `extra_info` that can
            provide the value. If a sample has none of a parameter's fields, it is unscored.
        forms: for each attempt to call the function, whether completions are passed as chat messages. The second
            attempt, if any, happens only if the first fails because the function expects the other form.
        folder: folder of the function's code; empty if it has no Python code.
        title: the function's name for messages, with its file and line; empty for a built-in function.
        reads_turns: whether the function reads all turns; `extra` then has the response as `WHOLE_RESPONSE`, unless it
            has only one turn.
    """

    function: Callable[..., Any]
    parameters: Sequence[Parameter]
    rest: Callable[[Sample], dict[str, Any]] | None
    required: Mapping[str, Sequence[str]]
    forms: Sequence[bool] = (False,)
    folder: str = ""
    title: str = ""
    reads_turns: bool = False

    def evaluate(self, response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
        """Call the function for each reference, and return the outcome with the highest value.

        The sample is unscored if a required field is missing, or if every call ends without a score. A call ends
        without a score if the function returns None as the score, or raises `Unscored` or `RequestError`.

        Raises:
            ResultError: the function returned something that is not a score.
            Exception: any other exception of the function. A note names the line in the function's own code.
        """
        for name, fields in self.required.items():
            if not any(field in extra for field in fields):
                remedy = f"send it, or give the parameter a default ({name}=None)"
                hint = f", but {self.title} requires it; {remedy}" if self.title else ""
                reason = f"extra_info.{name} is missing{hint}"
                return Outcome(None, reason, field=f"extra_info.{name}", cause=Cause.BAD_OPTION)
        sample = Sample(response, None, extra, response)
        if self.reads_turns:
            raw = extra.get(WHOLE_RESPONSE, response)
            turns = read_turns(response, raw, extra.get(TRANSCRIPT, AUTO))
            extra = {name: value for name, value in extra.items() if name not in (WHOLE_RESPONSE, TRANSCRIPT)}
            sample = Sample(response, None, extra, raw, turns)
        outcomes = [self._attempt(sample._replace(reference=reference)) for reference in references or (None,)]
        if len(outcomes) == 1:
            return outcomes[0]
        return max(outcomes, key=lambda outcome: -math.inf if outcome.value is None else outcome.value)

    def evaluate_once(self, response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
        """Do the same as `evaluate` for a function that reads no reference, but call it only once for a sample."""
        return self.evaluate(response, (), extra)

    def _attempt(self, sample: Sample) -> Outcome:
        try:
            return as_outcome(self._try_forms(sample) if len(self.forms) > 1 else self._run(sample), self.title)
        except Unscored as error:
            return Outcome(None, str(error), cause=error.cause)
        except RequestError as error:
            return Outcome.of_error(error)

    def _try_forms(self, sample: Sample) -> Any:
        """Call the function with the first of `forms`; if it cannot read the completion, call it with the second."""
        first, second = self.forms
        try:
            return self._run(sample._replace(messages=first))
        except (TypeError, AttributeError) as error:
            if not _WRONG_FORM.search(str(error)):
                raise
            try:
                return self._run(sample._replace(messages=second))
            except (Unscored, RequestError):
                raise
            except Exception:  # noqa: BLE001 - the first error is the one to report
                raise error from None

    def _run(self, sample: Sample) -> Any:
        positional, named = [], {}
        for name, get, default, as_list, by_position in self.parameters:
            value = get(sample)
            if value is ABSENT:
                value = default
            elif as_list:
                value = [value]
            if by_position:
                positional.append(value)
            elif value is not ABSENT:
                named[name] = value
        if self.rest is not None:
            named |= self.rest(sample)
        try:
            result = self.function(*positional, **named)
            if isinstance(result, (float, Outcome, dict)) or not inspect.isawaitable(result):
                return result
            return _event_loop().run_until_complete(_await(result))
        except BaseException as error:
            _add_location(error, self.folder)
            raise


async def _await(result: Any) -> Any:
    return await result


@lru_cache(maxsize=1)
def _event_loop() -> asyncio.AbstractEventLoop:
    """Return one event loop for all calls, because an HTTP client that a module keeps works only in one loop."""
    return asyncio.new_event_loop()


def read_turns(response: str, raw: Any, transcript: str) -> Chat:
    """Return all turns of a response as chat messages. The last one is empty if the policy said nothing in it.

    Args:
        response: the last assistant turn.
        raw: the whole response: chat messages, which are returned, or a string, which is split.
        transcript: how to split it; see `split_turns`.
    """
    if not isinstance(raw, str):
        return to_chat(raw)
    chat, reasoning = Chat(), ""
    for role, text in split_turns(raw, transcript).turns if raw != response else ():
        if role == REASONING:
            reasoning = text
        elif role == ASSISTANT:
            chat.append({"role": role, "content": text, **({"reasoning_content": reasoning} if reasoning else {})})
            reasoning = ""
        else:
            chat.append({"role": role if role in ("user", "system", "developer") else "tool", "content": text})
    if chat and chat[-1]["role"] == ASSISTANT and chat[-1]["content"] == response.strip():
        chat[-1]["content"] = response
    elif not (chat and response):
        chat.append({"role": ASSISTANT, "content": response})
    return chat


def get_code(function: Any) -> CodeType | None:
    """Return the code object of a callable; None if it is not written in Python."""
    found = _python_function(function)
    return None if found is None else found.__code__


def _python_function(function: Any) -> FunctionType | None:
    """Return the Python function behind a callable: a decorated function, a bound method, or an object's `__call__`."""
    function = inspect.unwrap(without_partial(function))
    candidates = (getattr(callee, "__func__", callee) for callee in (function, type(function).__call__))
    return next((candidate for candidate in candidates if isinstance(candidate, FunctionType)), None)


def without_partial(function: Any) -> Any:
    """Return the function behind a `functools.partial`, or the function itself."""
    while isinstance(function, partial):
        function = function.func
    return function


def reads_messages(function: Any) -> bool:
    """Return whether a function seems to read chat messages: its code contains a constant of `MESSAGE_FIELDS`.

    Functions of the same module that it calls are searched, too.
    """
    pending, seen = [_python_function(function)], set()
    while pending:
        current = pending.pop()
        if current is None or current in seen:
            continue
        seen.add(current)
        codes = [*_nested_codes(current.__code__)]
        if any(MESSAGE_FIELDS.intersection(_names(code)) for code in codes):
            return True
        module = current.__module__
        called = (current.__globals__.get(name) for code in codes for name in code.co_names)
        pending += [callee for callee in called if isinstance(callee, FunctionType) and callee.__module__ == module]
    return False


def code_folder(function: Any) -> str:
    """Return the folder of a function's code, with a trailing separator; empty if it has no Python code."""
    code = get_code(function)
    return "" if code is None else os.path.join(os.path.dirname(os.path.abspath(code.co_filename)), "")


def _names(code: CodeType) -> Iterator[str]:
    return (constant for constant in code.co_consts if isinstance(constant, str))


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)


def _add_location(error: BaseException, folder: str) -> None:
    """Add a note to an error: file and line of the place in the function's own code that led to it.

    This place is the last traceback entry whose file is in `folder`, but not in a `site-packages` below it. Entries
    without a file, such as `<frozen os>`, do not count. If there is no such entry, add no note.
    """
    place, frame = "", error.__traceback__
    while folder and frame is not None:
        name = frame.tb_frame.f_code.co_filename
        file = os.path.abspath(name)
        if not name.startswith("<") and file.startswith(folder) and "site-packages" not in file[len(folder) :]:
            place = f"{file[len(folder) :]}, line {frame.tb_lineno}"
        frame = frame.tb_next
    if place:
        error.__notes__ = [*getattr(error, "__notes__", ()), place]  # type: ignore[attr-defined]
