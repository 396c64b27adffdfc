"""What a judge sees of a sample: the task, and the response: its last reply, or all turns (`view = "full_trace"`).

Each turn of a conversation is fenced (`fences`). Turns in the response that are not the policy's, such as tool output,
are marked as not the candidate's words. Reasoning is omitted unless `hide_reasoning` is false.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from rewardstack.core.fields import Fields, field_error
from rewardstack.core.json_types import plain
from rewardstack.core.messages import TEXTS, is_conversation
from rewardstack.score import Item
from rewardstack.scorers.judge.fences import Fenced, fence
from rewardstack.scorers.judge.images import IMAGES, MARK, ImageReader
from rewardstack_verifier.transcript import ASSISTANT, REASONING, TOOL, all_turns, without_reasoning

View = Literal["last_reply", "full_trace"]
VIEWS: tuple[View, ...] = ("last_reply", "full_trace")
MESSAGES = "messages"
TASKS = ("problem", "prompt", MESSAGES, "question")
"""Fields of `extra_info` that may have the task; the first one that has it counts."""
THOUGHTS = ("reasoning", "reasoning_content", "thinking")
"""Fields of a message that may have the reasoning."""
IMAGE_PARTS = ("image_url", "image", "input_image")
"""Types of message parts with an image."""
ROLES = {"system": "System", "developer": "System", "user": "User", "assistant": "Assistant", "model": "Assistant"}
"""Display names of roles in the prompt; any other role counts as a tool."""


class Turn(NamedTuple):
    """One turn of a conversation.

    Args:
        role: the role in lower case; `tool` for tool output and unknown roles.
        text: the text, with a placeholder for each image.
        images: the message parts with images.
    """

    role: str
    text: str
    images: tuple[Any, ...] = ()

    @property
    def is_policy(self) -> bool:
        """Whether the turn is the policy's."""
        return self.role in (ASSISTANT, REASONING)


Turns = tuple[Turn, ...]


class Shown(NamedTuple):
    """The parts of a sample that the judge sees, except its references.

    Args:
        problem: the task as a text; fenced if the task is a conversation.
        candidate: the last reply, or the fenced turns of the response if all are shown.
        task: the turns of the task if it is a conversation; else empty.
        trace: the turns of the response if all are shown; else empty.
        images: URLs of the images, in the order in which the texts mention them.
    """

    problem: str
    candidate: str
    task: Turns = ()
    trace: Turns = ()
    images: tuple[str, ...] = ()

    @property
    def portable(self) -> dict[str, Any]:
        """The fields of `extra_info` from which a reward server builds an equal `Shown`."""
        found: dict[str, Any] = {"problem": _messages(self.task) if self.task else self.problem}
        found |= {MESSAGES: _messages(self.trace)} if self.trace else {}
        return {**found, **({IMAGES: list(self.images)} if self.images else {})}


def read_shown(item: Item, view: View, *, hide: bool, allow_urls: bool) -> Shown:
    """Return the parts of a sample that the judge sees.

    Args:
        item: the sample.
        view: whether to show all turns of the response, or the last reply.
        hide: whether to omit the policy's reasoning.
        allow_urls: whether images may be URLs, which the judge then fetches.

    Raises:
        RequestError: the task, the messages or an image cannot be read; the error names the field.
    """
    problem, task = read_task(item.extra, hide=hide)
    is_needed = view == "full_trace" or not (problem or task)
    messages = _turns(item.extra.get(MESSAGES), MESSAGES, hide=hide) if is_needed else ()
    if not task and messages and not problem:
        task = _before(messages, _trace(item, messages, (), hide=hide) if view == "full_trace" else messages[-1:])
    trace = _trace(item, messages, task, hide=hide) if view == "full_trace" else ()
    trace = trace if len(trace) > 1 else ()
    images = ImageReader(item.extra, allow_urls=allow_urls)
    task, trace = (tuple(_numbered(turn, images) for turn in turns) for turns in (task, trace))
    if len(task) == 1 and task[0].role == "user":
        problem, task = task[0].text, ()
    candidate = _fenced(trace, "candidate") if trace else _last_reply(item, hide=hide)
    return Shown(_fenced(task, "problem") if task else problem, candidate, task, trace, images.finish())


def read_task(extra: Mapping[str, Any], *, hide: bool = True) -> tuple[str, Turns]:
    """Return the task as a text and as turns; the turns are empty unless it is a conversation, the text if it is one.

    Both are empty if there is no task.

    Raises:
        RequestError: `problem` is neither a string nor chat messages.
    """
    for name in TASKS:
        value = Fields(extra).get(name)
        if name == MESSAGES and not _ends_before_reply(value):
            continue
        if isinstance(value, str) and (value or name == "problem"):
            return value, ()
        if is_conversation(value):
            return "", _turns(value, name, hide=hide)
        if value is not None and name == "problem":
            raise field_error(name, f"expected a string or chat messages, got {type(value).__name__}")
    return "", ()


def _ends_before_reply(messages: Any) -> bool:
    """Return whether messages are a conversation that ends before the response: with a user or system turn."""
    if not is_conversation(messages):
        return False
    last = messages[-1] if isinstance(messages, list) else messages
    return ROLES.get(str(last["role"]).lower()) in ("User", "System")


def _turns(value: Any, name: str, *, hide: bool) -> Turns:
    """Return the turns of chat messages; raise RequestError if the value is not chat messages."""
    messages = plain(value)
    if not messages and (messages is None or isinstance(messages, list)):
        return ()
    if not is_conversation(messages):
        raise field_error(name, "expected chat messages: a list of {'role': …, 'content': …}")
    messages = [messages] if isinstance(messages, dict) else messages
    turns = (_turn(one, f"{name}[{at}]", hide=hide) for at, one in enumerate(messages, 1))
    return tuple(turn for turn in turns if turn.text)


def _turn(message: Mapping[str, Any], place: str, *, hide: bool) -> Turn:
    role = str(message.get("role")).lower()
    role = ASSISTANT if ROLES.get(role) == "Assistant" else role if role in ROLES else TOOL
    content = message.get("content")
    parts = [content] if isinstance(content, str) else [] if content is None else content
    if not isinstance(parts, list):
        raise field_error(place.partition("[")[0], f"the content of {place} is neither a text nor a list of parts")
    images = [part for part in parts if isinstance(part, dict) and part.get("type") in IMAGE_PARTS]
    text = "".join(map(_part, parts))
    text = without_reasoning(text).strip() if hide and role == ASSISTANT else text
    thoughts = next((message[name] for name in THOUGHTS if isinstance(message.get(name), str)), "")
    calls = message.get("tool_calls")
    pieces = [_thought(thoughts) if thoughts and not hide else "", text]
    pieces += map(_call, calls if isinstance(calls, list) else [])
    return Turn(role, "\n".join(filter(None, pieces)), tuple(images))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part.replace(MARK, "")
    kind = part.get("type", "text") if isinstance(part, dict) else type(part).__name__
    if kind in TEXTS:
        return str(part.get("text") or "").replace(MARK, "")
    return MARK if kind in IMAGE_PARTS else f"[{kind}, which is not shown]"


def _thought(text: str) -> str:
    return f"<think>\n{text}\n</think>"


def _call(call: Any) -> str:
    """Return a tool call in readable form."""
    function = call.get("function", call) if isinstance(call, dict) else {}
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments", "")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"[call {function.get('name', '')}({shown})]"


def _response(item: Item, *, hide: bool) -> Turns:
    """Return the turns of the response, which is a list of chat messages or a string with chat template headers."""
    if not isinstance(item.messages, str):
        return _turns(item.messages, "solution_str", hide=hide)
    found = []
    for role, text in all_turns(item.messages):
        if role == REASONING:
            found += [] if hide else [Turn(role, _thought(text))]
        else:
            known = role if role in ROLES else TOOL
            found.append(Turn(known, without_reasoning(text).strip() if hide and role == ASSISTANT else text))
    return tuple(turn for turn in found if turn.text)


def _trace(item: Item, messages: Turns, task: Turns, *, hide: bool) -> Turns:
    """Return the turns to judge: those of the response, else `messages` after the task or from the first reply on."""
    if item.messages is not None and len(found := _response(item, hide=hide)) > 1:
        return found
    if task and messages[: len(task)] == task:
        found = messages[len(task) :]
    else:
        found = messages[next((at for at, turn in enumerate(messages) if turn.is_policy), len(messages)) :]
    last = _last_reply(item, hide=hide).strip()
    return found if not last or (found and found[-1].text.strip() == last) else (*found, Turn(ASSISTANT, last))


def _before(messages: Turns, trace: Turns) -> Turns:
    """Return the turns of `messages` that come before those in `trace`."""
    shared = next((at for at in range(len(messages)) if messages[at:] == trace[: len(messages) - at]), len(messages))
    return messages[:shared] if trace and trace[0].is_policy else messages


def _last_reply(item: Item, *, hide: bool) -> str:
    """Return the last reply of the policy, without its reasoning if `hide`."""
    if hide:
        return without_reasoning(item.solution)
    turns = _response(item, hide=False) if item.messages is not None else ()
    last = max((at for at, turn in enumerate(turns) if turn.role == ASSISTANT), default=-1)
    if last < 0:
        return item.solution
    thoughts = turns[last - 1 : last] if last and turns[last - 1].role == REASONING else ()
    return "\n".join(turn.text for turn in (*thoughts, turns[last]))


def _numbered(turn: Turn, images: ImageReader) -> Turn:
    """Add the turn's images to `images`; return the turn with the number of each image in its text."""
    text = turn.text
    for image in turn.images:
        text = text.replace(MARK, images.add(image), 1)
    return turn._replace(text=text, images=())


def _messages(turns: Turns) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.text} for turn in turns]


def _fenced(turns: Iterable[Turn], own: str) -> Fenced:
    """Return the turns as a text: each turn is fenced, below the name of its role.

    Args:
        turns: the turns of the task or of the response.
        own: name of the fences: `problem` or `candidate`; for `candidate`, turns that are not the policy's get `tool`.
    """
    pieces = []
    for turn in turns:
        name, label = own, ROLES.get(turn.role, "Tool output")
        if own == "candidate":
            name, label = (own, "Candidate") if turn.is_policy else ("tool", f"{label} (not the candidate's words)")
        pieces.append(f"{label}:\n{fence(name, turn.text)}")
    return Fenced("\n".join(pieces))
