"""Chat messages from trainers: `{"role", "content"}`. The content is a text, or a list of parts that may include
`{"type": "text", "text"}`, as in OpenAI's chat completions and TRL's conversational data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardstack.core.json_types import is_array, plain

TEXTS = ("text", "output_text")
"""Types of text parts; `output_text` is the one of OpenAI's Responses API."""


def is_conversation(value: Any) -> bool:
    """Return whether a value is a message (a mapping with `role`), or a non-empty list or NumPy array of messages."""
    if isinstance(value, (list, tuple)) or is_array(value):
        return len(value) > 0 and all(isinstance(one, Mapping) and "role" in one for one in value)
    return isinstance(value, Mapping) and "role" in value


def response_text(response: Any) -> str | None:
    """Return a response as text: a string unchanged, or the text of its last assistant message; else None.

    If that message has no content, such as a tool call, the response is empty.
    """
    if isinstance(response, str):
        return response
    last = _last(response, "assistant")
    return None if last is None else "" if last.get("content") is None else _text(last["content"])


def last_text(conversation: Any, role: str) -> str | None:
    """Return the text of the last message with a role.

    Args:
        conversation: a message, or a list (or NumPy array) of messages; other values have no messages.
        role: role such as `assistant`.

    Returns:
        The text. None if no message has the role, or if the last message with the role has no text, such as a tool
        call.
    """
    last = _last(conversation, role)
    return None if last is None else _text(last.get("content"))


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of one message; empty if it has none, such as a tool call."""
    return _text(message.get("content")) or ""


def _last(conversation: Any, role: str) -> dict[str, Any] | None:
    value = plain(conversation)
    messages = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    found = [one for one in messages if isinstance(one, dict) and one.get("role") == role]
    return found[-1] if found else None


def _text(content: Any) -> str | None:
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    parts = [part for part in content if isinstance(part, dict) and part.get("type", "text") in TEXTS]
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    return "".join(texts) if texts else None
