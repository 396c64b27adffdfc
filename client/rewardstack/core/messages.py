"""Read chat messages from trainers and agents: convert them to one shape, and select their texts.

The shape is that of OpenAI's chat completions and TRL's conversational data. A message has `role` and `content`, a
string or a list of parts such as `{"type": "text", "text": …}`. Tool calls are in `tool_calls`, the result of a tool is
a message with the role `tool`, and reasoning is in `reasoning_content`. These shapes are converted:

| shape | tool call | result | source |
| --- | --- | --- | --- |
| OpenAI's old functions | `function_call` | role `function` | https://platform.openai.com/docs/api-reference/chat |
| OpenAI's Responses | item `function_call`, `…_call` | item `…_call_output` | …/docs/api-reference/responses |
| Anthropic | part `tool_use` | part `tool_result` in a user message | https://docs.anthropic.com/en/api/messages |
| Gemini | `functionCall` in `parts` | `functionResponse` | https://ai.google.dev/api/caching#Content |
| verifiers | `{"id", "name", "arguments"}`, also as JSON text | role `tool` | `verifiers/types.py` |

Parts that no shape defines are kept: who shows a message has to refuse them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardstack.core.json_types import is_array, is_deep, plain

Message = dict[str, Any]
WHOLE_RESPONSE = "solution_str"
"""In the list of fields that a reward function reads: the response with all its turns, unless it has only one. It is
never a field of `extra_info`."""
TRANSCRIPT = "transcript"
"""Field of `extra_info` that says how to split a response that is a string into turns."""
TEXTS = ("text", "output_text", "input_text")
"""Types of text parts."""
REASONING_FIELD = "reasoning_content"
_ROLES = {"model": "assistant", "function": "tool"}
_ITEMS = ("message", "reasoning")
_ITEM_ENDS = ("_call", "_call_output")
"""Types, and ends of types, of the items in `output` of OpenAI's Responses API."""
_CALL_PARTS = ("tool_use", "server_tool_use", "mcp_tool_use")
_THINKING = ("thinking", "redacted_thinking")
_RESULT_END = "tool_result"
_ARGUMENTS = ("arguments", "args", "input", "code", "action")
_RESULTS = ("output", "outputs", "results")
_ABOUT_ITEMS = ("type", "id", "call_id", "status", "name", *_RESULTS)


class Chat(list[Message]):
    """Messages in OpenAI's shape. `to_chat` returns a `Chat` unchanged, so that no message is converted twice."""


@dataclass(frozen=True)
class UnknownResponse:
    """In place of a response that a trainer's data does not show.

    Args:
        reason: why it is unknown; its sample is unscored for this reason.
    """

    reason: str


def is_message(value: Any) -> bool:
    """Return whether a value is a message: a mapping with `role`, or an item of OpenAI's Responses API."""
    if not isinstance(value, Mapping):
        return False
    kind = value.get("type")
    return value.get("role") is not None or (isinstance(kind, str) and (kind in _ITEMS or kind.endswith(_ITEM_ENDS)))


def to_chat(conversation: Any) -> Chat:
    """Return messages in OpenAI's shape; messages that have it already are not changed.

    Args:
        conversation: a message, or a list (or NumPy array) of messages and Responses items. Other values are left out.
            An item of an unknown type becomes a tool message whose content is the item. Nothing is read from a value
            that `is_deep`.
    """
    if isinstance(conversation, Chat):
        return conversation
    if isinstance(conversation, str) or is_deep(conversation):
        return Chat()
    value = plain(conversation)
    chat, reasoning = Chat(), list[str]()
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict):
            continue
        if one.get("role") is None and one.get("type") == "reasoning":
            reasoning += _reasoning_texts(one)
            continue
        messages = _convert_message(one)
        if reasoning and messages and messages[0].get("role") == "assistant":
            messages[0] = {**messages[0], REASONING_FIELD: "\n".join(reasoning)}
            reasoning = []
        chat += messages
    if reasoning:
        chat.append({"role": "assistant", "content": None, REASONING_FIELD: "\n".join(reasoning)})
    return chat


def is_conversation(value: Any) -> bool:
    """Return whether a value is a message (a mapping with `role`), or a non-empty list or NumPy array of messages.

    A list may also have items of OpenAI's Responses API; an item of an unknown type counts if it has a `type`.
    """
    if isinstance(value, (list, tuple)) or is_array(value):
        messages = [isinstance(one, Mapping) and ("role" in one or "type" in one) for one in value]
        return all(messages) and any(map(is_message, value))
    return is_message(value)


def response_text(response: Any) -> str | None:
    """Return the text of a response: a string unchanged, or the text of the last assistant message.

    Returns:
        The text. Empty if the last assistant message has no `content`, e.g. because it is a tool call. None if the
        `content` has no text, or if `response` is neither a string nor messages with an assistant message.
    """
    if isinstance(response, str):
        return response
    last = last_message(response, "assistant")
    return None if last is None else "" if last.get("content") is None else _text(last["content"])


def last_text(conversation: Any, role: str) -> str | None:
    """Return the text of the last message with a role.

    Args:
        conversation: a message, or a list (or NumPy array) of messages; other values have no messages.
        role: role such as `assistant`.

    Returns:
        The text. None if no message has the role, or if the last message with it has no text, e.g. a tool call.
    """
    last = last_message(conversation, role)
    return None if last is None else _text(last.get("content"))


def last_message(conversation: Any, role: str) -> Message | None:
    """Return the last message with a role, in OpenAI's shape; None if there is none. See `last_text`."""
    return next((message for message in reversed(to_chat(conversation)) if message["role"] == role), None)


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of one message; empty if the message has no text, e.g. a tool call."""
    return _text(message.get("content")) or ""


def has_more_than_text(prompt: Any) -> bool:
    """Return whether a prompt has more than the text of one message, e.g. a system message or an image."""
    if not is_conversation(prompt) or isinstance(prompt, Mapping):
        return False
    return len(prompt) > 1 or not isinstance(prompt[0].get("content"), str)


def _text(content: Any) -> str | None:
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    parts = [part for part in content if isinstance(part, dict) and part.get("type", "text") in TEXTS]
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    return "".join(texts) if texts else None


def _convert_message(message: Message) -> list[Message]:
    """Return a message in OpenAI's shape; several, if it also contains results of tools."""
    if message.get("role") is None and message.get("type") != "message":
        return _convert_item(message)
    role = str(message.get("role") or "assistant").lower()
    message = {**message, "role": _ROLES.get(role, role)}
    if isinstance(parts := message.pop("parts", None), list):
        message["content"] = [_from_gemini(part) for part in parts]
    if isinstance(call := message.pop("function_call", None), dict):
        message["tool_calls"] = [_to_call(call)]
    elif isinstance(calls := message.get("tool_calls"), list):
        message["tool_calls"] = [_to_call(call) for call in calls]
    return _split(message) if isinstance(message.get("content"), list) else [message]


def _split(message: Message) -> list[Message]:
    """Move calls, results and reasoning out of the parts of a message; each result is a message of its own."""
    parts = message["content"]
    if not any(_is_moved(part) for part in parts):
        return [{**message, "content": _joined([_convert_part(part) for part in parts], {"output_text", "input_text"})}]
    messages: list[Message] = []
    current = {**message, "content": [], "tool_calls": [*(message.get("tool_calls") or ())], REASONING_FIELD: []}
    for part in parts:
        kind = part.get("type") if _is_moved(part) else ""
        if kind in _CALL_PARTS:
            current["tool_calls"].append(_to_call(part))
        elif kind in _THINKING:
            current[REASONING_FIELD].append(str(part.get("thinking") or ""))
        elif kind:
            messages += [*_close(current), _to_result(part)]
            current = {"role": message["role"], "content": [], "tool_calls": [], REASONING_FIELD: []}
        else:
            current["content"].append(_convert_part(part))
    return messages + _close(current)


def _is_moved(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and (kind in _CALL_PARTS or kind in _THINKING or kind.endswith(_RESULT_END))


def _close(message: Message) -> list[Message]:
    """Return the message with the parts that were not moved; none if all of its parts were results."""
    content, calls, reasoning = (message.pop(name) for name in ("content", "tool_calls", REASONING_FIELD))
    if not (content or calls or reasoning):
        return []
    message |= {"content": _joined(content, {*TEXTS}) or None}
    message |= {"tool_calls": calls} if calls else {}
    return [message | ({REASONING_FIELD: "".join(reasoning)} if reasoning else {})]


def _joined(parts: list[Any], kinds: set[str]) -> list[Any] | str:
    """Return the text of parts that all have one of these types; otherwise the parts."""
    if not all(isinstance(part, dict) and part.get("type") in kinds for part in parts):
        return parts
    return "".join(text for part in parts if isinstance(text := part.get("text"), str))


def _convert_part(part: Any) -> Any:
    """Return a part with OpenAI's names for a refusal, and for an image of Anthropic's API."""
    if not isinstance(part, dict):
        return part
    source = part.get("source")
    if part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
        return {"type": "text", "text": part["refusal"]}
    if part.get("type") == "image" and isinstance(source, dict) and (source.get("url") or source.get("data")):
        url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": url}}
    return part


def _to_result(part: Message) -> Message:
    """Return the result of a tool, a part of Anthropic's API, as a message."""
    content = part.get("content")
    if part["type"] == _RESULT_END and isinstance(content, list):
        content = [_convert_part(one) for one in content]
    else:
        content = _to_text(content)
    return _tool_message(part.get("tool_use_id"), content)


def _to_call(call: Any) -> Message:
    """Return a tool call as an element of OpenAI's `tool_calls`; a text that is no call becomes the arguments."""
    if isinstance(call, str):
        call = _parse_call(call)
    if not isinstance(call, dict):
        return {"type": "function", "function": {"name": "", "arguments": _to_text(call)}}
    if isinstance(call.get("function"), dict):
        return call
    inner = call["custom"] if isinstance(call.get("custom"), dict) else call
    name = inner.get("name") or inner.get("function") or inner.get("type") or ""
    arguments = next((inner[one] for one in _ARGUMENTS if inner.get(one) is not None), "")
    ids = {"id": call["id"]} if call.get("id") is not None else {}
    return {**ids, "type": "function", "function": {"name": str(name), "arguments": arguments}}


def _parse_call(text: str) -> Any:
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return call if isinstance(call, dict) and not is_deep(call) else text


def _convert_item(item: Message) -> list[Message]:
    """Return an item of OpenAI's Responses API that is neither a message nor reasoning."""
    kind, ident = str(item.get("type")), item.get("call_id") or item.get("id")
    if kind.endswith("_output"):
        output = item.get("output")
        parts = output if isinstance(output, list) else [output]
        is_parts = all(isinstance(part, dict) and "type" in part for part in parts)
        return [_tool_message(ident, _joined(parts, {*TEXTS}) if is_parts else _to_text(output))]
    if not kind.endswith("_call"):
        return [{"role": "tool", "content": [item]}]
    arguments = next((item[one] for one in _ARGUMENTS if item.get(one) is not None), None)
    if arguments is None:
        arguments = {name: value for name, value in item.items() if name not in _ABOUT_ITEMS}
    function = {"name": str(item.get("name") or kind.removesuffix("_call")), "arguments": arguments}
    call = {"id": ident, "type": "function", "function": function}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    results = [item[name] for name in _RESULTS if item.get(name) is not None]
    return messages + [_tool_message(ident, _to_text(result)) for result in results]


def _tool_message(ident: Any, content: str | list[Any]) -> Message:
    return {"role": "tool", "tool_call_id": ident, "content": content}


def _from_gemini(part: Any) -> Any:
    """Return a part of Gemini's API, in the names of Anthropic's API or as a text or an image."""
    if not isinstance(part, dict):
        return part
    fields = {_snake(name): value for name, value in part.items() if value is not None}
    if isinstance(text := fields.get("text"), str):
        return {"type": "thinking", "thinking": text} if fields.get("thought") else {"type": "text", "text": text}
    name, value = next(((name, value) for name, value in fields.items() if isinstance(value, dict)), ("part", {}))
    if name == "function_call":
        return {"type": "tool_use", "name": value.get("name"), "input": value.get("args")}
    if name == "function_response":
        return {"type": _RESULT_END, "content": _to_text(value.get("response"))}
    if name == "executable_code":
        return {"type": "tool_use", "name": value.get("language"), "input": value.get("code")}
    if name == "code_execution_result":
        return {"type": _RESULT_END, "content": _to_text(value.get("output"))}
    kind = str(value.get("mimeType") or value.get("mime_type"))
    if name == "inline_data" and kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{value.get('data')}"}}
    return {**value, "type": name}


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _reasoning_texts(item: Message) -> list[str]:
    lists = (value for name in ("summary", "content") if isinstance(value := item.get(name), list))
    texts = (part.get("text") for parts in lists for part in parts if isinstance(part, dict))
    return [text for text in texts if isinstance(text, str)]


def _to_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)
