"""Select the parts of a sample that a judge sees: the task, and the last reply or all turns of the response.

Each turn of a conversation is fenced (`fences`). Turns in the response that the policy did not write, such as tool
output, are marked "not the candidate's words". The policy's reasoning is shown only if `hide_reasoning` is false.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from operator import add
from typing import Any, Literal, NamedTuple

from rewardstack.core.fields import Fields, field_error
from rewardstack.core.json_types import is_list, plain
from rewardstack.core.messages import TEXTS, Chat, is_conversation, last_message, to_chat
from rewardstack.score import Item
from rewardstack.scorers.judge.fences import Fenced, fence
from rewardstack.scorers.judge.images import IMAGE_MARK, IMAGES, ImageReader, check_media
from rewardstack_verifier.transcript import ASSISTANT, REASONING, TOOL, Transcript, without_reasoning

View = Literal["last_reply", "full_trace"]
VIEWS: tuple[View, ...] = ("last_reply", "full_trace")
MESSAGES = "messages"
TASK_FIELDS = ("problem", "prompt", MESSAGES, "question")
"""Fields of `extra_info` that may contain the task; the first match is used."""
REASONING_FIELDS = ("reasoning", "reasoning_content", "thinking")
"""Fields of a message that may contain the reasoning."""
ROLES = {"system": "System", "developer": "System", "user": "User", "assistant": "Assistant", "model": "Assistant"}
"""Display names of roles in the prompt; any other role is shown as tool output."""


class Turn(NamedTuple):
    """One turn of a conversation.

    Args:
        role: the role in lower case; `tool` for tool output and unknown roles.
        text: the text, with a placeholder for each image.
        images: the message parts that are not texts.
    """

    role: str
    text: str
    images: tuple[Any, ...] = ()

    @property
    def is_policy(self) -> bool:
        """Whether the policy wrote the turn."""
        return self.role in (ASSISTANT, REASONING)

    def shorten(self, limits: Mapping[str, int]) -> Turn:
        """Return the turn without the middle of its text if it is longer than the limit for its role."""
        limit = limits.get(self.role, len(self.text))
        if len(self.text) <= limit:
            return self
        half = limit // 2
        mark = f"\n[… {len(self.text) - 2 * half:,} characters left out …]\n"
        return self._replace(text=self.text[:half] + mark + self.text[-half:])


Turns = tuple[Turn, ...]


class ShownParts(NamedTuple):
    """The parts of a sample that the judge sees, without the references.

    Args:
        problem: the task as a text; fenced if the task is a conversation.
        candidate: the fenced turns of `trace`. If `trace` is empty, the last reply, which has no fence yet.
        task: the turns of the task if it is a conversation; else empty.
        trace: the turns of the response if `view` is `full_trace` and the response has several turns; else empty.
        images: URLs of the images, in the order in which the texts mention them.
    """

    problem: str
    candidate: str
    task: Turns = ()
    trace: Turns = ()
    images: tuple[str, ...] = ()

    @property
    def portable(self) -> dict[str, Any]:
        """The fields of `extra_info` to send to a reward server, so that its judge sees the same parts."""
        turns: dict[str, Any] = {"problem": _to_messages(self.task) if self.task else self.problem}
        turns |= {MESSAGES: _to_messages(self.trace)} if self.trace else {}
        return {**turns, **({IMAGES: list(self.images)} if self.images else {})}

    @property
    def policy_words(self) -> ShownParts:
        """What the policy wrote in the response, without the task and other speakers' turns."""
        own = tuple(turn for turn in self.trace if turn.is_policy)
        return ShownParts("", _fence_turns(own, "candidate") if self.trace else self.candidate)

    def shorten(self, limits: Mapping[str, int]) -> ShownParts:
        """Return the parts with shorter turns.

        Args:
            limits: maximum number of characters of a turn by its role. The last turn of a user in the task is the
                problem, and is never shortened.
        """
        last = max((index for index, turn in enumerate(self.task) if turn.role == "user"), default=-1)
        task = tuple(turn if index == last else turn.shorten(limits) for index, turn in enumerate(self.task))
        trace = tuple(turn.shorten(limits) for turn in self.trace)
        return self._replace(
            problem=_fence_turns(task, "problem") if task else self.problem,
            candidate=_fence_turns(trace, "candidate") if trace else self.candidate,
            task=task,
            trace=trace,
        )

    @property
    def last_reply(self) -> str:
        """The last reply as the judge sees it; empty if `trace` ends with a turn that the policy did not write."""
        if not self.trace:
            return self.candidate
        return self.trace[-1].text if self.trace[-1].is_policy else ""


def read_shown_parts(item: Item, view: View, *, hide: bool, allow_urls: bool) -> ShownParts:
    """Return the parts of a sample that the judge sees.

    Args:
        item: the sample.
        view: whether to show the last reply or all turns of the response.
        hide: whether to omit the policy's reasoning.
        allow_urls: whether images may be web URLs, which the judge's server then fetches.

    Raises:
        RequestError: the task, the messages or an image cannot be read; the error names the field.
    """
    check_media(item.extra)
    problem, task = read_task(item.extra, hide=hide)
    is_needed = view == "full_trace" or not (problem or task)
    messages = _parse_turns(item.extra.get(MESSAGES), MESSAGES, hide=hide) if is_needed else ()
    if not task and messages and not problem:
        task = _turns_before(
            messages, _select_trace(item, messages, (), hide=hide) if view == "full_trace" else messages[-1:]
        )
    if view == "full_trace":
        trace = _select_trace(item, messages, task, hide=hide)
    else:
        trace = _last_message_turns(item, hide=hide)
    trace = trace if len(trace) > 1 or any(turn.images for turn in trace) else ()
    urls: tuple[str, ...] = ()
    if task or trace or IMAGES in item.extra:
        images = ImageReader(item.extra, allow_urls=allow_urls)
        task, trace = (tuple(_number_images(turn, images) for turn in turns) for turns in (task, trace))
        urls = images.finish()
    if len(task) == 1 and task[0].role == "user":
        problem, task = task[0].text, ()
    candidate = _fence_turns(trace, "candidate") if trace else _last_reply(item, hide=hide)
    return ShownParts(_fence_turns(task, "problem") if task else problem, candidate, task, trace, urls)


def read_task(extra: Mapping[str, Any], *, hide: bool = True) -> tuple[str, Turns]:
    """Return the task as a text or, if it is a conversation, as turns.

    The result is a pair of the text and the turns. At least one of them is empty, and both are if there is no task.

    Args:
        extra: the sample's `extra_info`.
        hide: whether to omit the policy's reasoning from the turns.

    Raises:
        RequestError: `problem` is neither a string nor chat messages, or a message has malformed content.
    """
    for name in TASK_FIELDS:
        value = Fields(extra).get(name)
        if name == MESSAGES and not _ends_before_reply(value):
            continue
        if isinstance(value, str) and (value or name == "problem"):
            return value, ()
        if is_conversation(value):
            return "", _parse_turns(value, name, hide=hide)
        if value is not None and name == "problem":
            raise field_error(name, f"expected a string or chat messages, got {type(value).__name__}")
    return "", ()


def _ends_before_reply(messages: Any) -> bool:
    """Return whether `messages` is a conversation that ends with a user or system turn."""
    last = to_chat(messages)[-1:] if is_conversation(messages) else []
    return any(ROLES.get(message["role"]) in ("User", "System") for message in last)


def _parse_turns(value: Any, name: str, *, hide: bool) -> Turns:
    """Return the turns of chat messages, without empty turns; raise RequestError if `value` is not chat messages."""
    if value is None or (is_list(plain(value)) and len(value) == 0):
        return ()
    if not isinstance(value, Chat) and not is_conversation(value):
        raise field_error(name, "expected chat messages: a list of {'role': …, 'content': …}")
    turns = (_parse_turn(one, f"{name}[{index}]", hide=hide) for index, one in enumerate(to_chat(value), 1))
    return tuple(turn for turn in turns if turn.text and not (hide and turn.role == REASONING))


def _parse_turn(message: Mapping[str, Any], location: str, *, hide: bool) -> Turn:
    """Return a message as a turn: its reasoning unless `hide`, its text, and its tool calls.

    Args:
        message: the message, from `to_chat`.
        location: the field and number of the message, for errors, such as `messages[2]`.
        hide: whether to omit the policy's reasoning.

    Raises:
        RequestError: the content is neither a string nor a list of parts.
    """
    role = str(message.get("role")).lower()
    role = ASSISTANT if ROLES.get(role) == "Assistant" else role if role in ROLES or role == REASONING else TOOL
    content = message.get("content")
    parts = [content] if isinstance(content, str) else [] if content is None else content
    if not isinstance(parts, list):
        raise field_error(
            location.partition("[")[0], f"the content of {location} is neither a text nor a list of parts"
        )
    images = [part for part in parts if _is_marked(part)]
    text = "".join(map(_part_text, parts))
    text = without_reasoning(text).strip() if hide and role == ASSISTANT else text
    reasoning = next((message[name] for name in REASONING_FIELDS if isinstance(message.get(name), str)), "")
    calls = message.get("tool_calls")
    pieces = [_format_reasoning(reasoning) if reasoning and not hide else "", text]
    pieces += map(_format_call, calls if isinstance(calls, list) else [])
    return Turn(role, "\n".join(filter(None, pieces)), tuple(images))


def _part_text(part: Any) -> str:
    """Return the text of a message part; `IMAGE_MARK` for any other. The mark is removed from texts that contain it."""
    if _is_marked(part):
        return IMAGE_MARK
    text = part if isinstance(part, str) else str(part.get("text") or "")
    return text.replace(IMAGE_MARK, "")


def _is_marked(part: Any) -> bool:
    """Return whether a message part is not a text, so that `ImageReader` has to show or refuse it."""
    if not isinstance(part, dict):
        return not isinstance(part, str)
    return part.get("type") not in TEXTS and ("type" in part or "text" not in part)


def _format_reasoning(text: str) -> str:
    return f"<think>\n{text}\n</think>"


def _format_call(call: Any) -> str:
    """Return a tool call as a text for the prompt."""
    function = call.get("function", call) if isinstance(call, dict) else {}
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments", "")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return f"[call {function.get('name', '')}({shown})]"


def _parse_response(item: Item, *, hide: bool) -> Turns:
    """Return the turns of the response, which may be chat messages or a string with chat template headers."""
    if not isinstance(item.messages, Transcript):
        return _parse_turns(item.messages, "solution_str", hide=hide)
    turns = []
    for role, text in item.messages.turns:
        if role == REASONING:
            turns += [] if hide else [Turn(role, _format_reasoning(text))]
        else:
            known_role = role if role in ROLES else TOOL
            turns.append(Turn(known_role, without_reasoning(text).strip() if hide and role == ASSISTANT else text))
    return tuple(turn for turn in turns if turn.text)


def _select_trace(item: Item, messages: Turns, task: Turns, *, hide: bool) -> Turns:
    """Return the turns of the response.

    If the item's response has several turns, return them. Otherwise, take the turns of `messages` after the task. If
    `messages` does not start with the task, take all turns from the policy's first turn on. If the last reply is not
    empty, and these turns do not end with it, append it.
    """
    turns = _parse_response(item, hide=hide) if item.messages is not None else ()
    if len(turns) > 1 or any(turn.images for turn in turns):
        return turns
    if task and messages[: len(task)] == task:
        turns = messages[len(task) :]
    else:
        turns = messages[next((index for index, turn in enumerate(messages) if turn.is_policy), len(messages)) :]
    last = _last_reply(item, hide=hide).strip()
    return turns if not last or (turns and turns[-1].text.strip() == last) else (*turns, Turn(ASSISTANT, last))


def _last_message_turns(item: Item, *, hide: bool) -> Turns:
    """Return the last message of the policy as a turn; nothing if the response is a string."""
    last = last_message(item.messages, ASSISTANT) if isinstance(item.messages, Chat) else None
    return () if last is None else _parse_turns(Chat([last]), "solution_str", hide=hide)


def _turns_before(messages: Turns, trace: Turns) -> Turns:
    """Return the turns of `messages` that precede the response.

    `messages` may end with turns of the response: turns that are also the first turns of `trace`. These are removed,
    but only if the policy wrote the first turn of `trace`.
    """
    shared = next(
        (index for index in range(len(messages)) if messages[index:] == trace[: len(messages) - index]), len(messages)
    )
    return messages[:shared] if trace and trace[0].is_policy else messages


def _last_reply(item: Item, *, hide: bool) -> str:
    """Return the last reply of the policy, without its reasoning if `hide`."""
    if hide:
        return without_reasoning(item.solution)
    turns = _parse_response(item, hide=False) if item.messages is not None else ()
    last = max((index for index, turn in enumerate(turns) if turn.role == ASSISTANT), default=-1)
    if last < 0:
        return item.solution
    reasoning = turns[last - 1 : last] if last and turns[last - 1].role == REASONING else ()
    return "\n".join(turn.text for turn in (*reasoning, turns[last]))


def _number_images(turn: Turn, images: ImageReader) -> Turn:
    """Add the turn's images to `images`, and write the number of each image into the text of the turn."""
    first, *rest = turn.text.split(IMAGE_MARK)
    labels = [images.add(image) for image in turn.images]
    return turn._replace(text=first + "".join(map(add, labels, rest)), images=())


def _to_messages(turns: Turns) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.text} for turn in turns]


def _fence_turns(turns: Iterable[Turn], fence_name: str) -> Fenced:
    """Return the turns as a text; each turn is fenced and has its role as heading.

    Args:
        turns: the turns of the task or of the response.
        fence_name: `problem` or `candidate`. If it is `candidate`, the turns that the policy did not write have fences
            with the name `tool`.
    """
    pieces = []
    for turn in turns:
        name, label = fence_name, ROLES.get(turn.role, "Tool output")
        if fence_name == "candidate":
            name, label = (
                (fence_name, "Candidate") if turn.is_policy else ("tool", f"{label} (not the candidate's words)")
            )
        pieces.append(f"{label}:\n{fence(name, turn.text)}")
    return Fenced("\n".join(pieces))
