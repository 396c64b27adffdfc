"""Chat messages, as trainers hand them over: `{"role", "content"}`, whose content is a text, or a list of parts of
which some are `{"type": "text", "text"}` (the form of OpenAI's chat completions, and of TRL's conversational data).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardstack.core.json_types import is_array, plain

TEXTS = ("text", "output_text")
"""Types of a part that is text; the second is that of OpenAI's responses."""


def is_conversation(value: Any) -> bool:
    """Whether a value is a message, or a list (or NumPy array) of messages of which there is at least one."""
    if isinstance(value, (list, tuple)) or is_array(value):
        return len(value) > 0 and all(isinstance(one, Mapping) and "role" in one for one in value)
    return isinstance(value, Mapping) and "role" in value


def response_text(response: Any) -> str | None:
    """A response as text: the string that it is, or what the assistant says last in its messages; else None.

    An assistant that ends without a text, in a call of a tool or cut off, has said nothing: that is an empty response.
    """
    if isinstance(response, str):
        return response
    last = _last(response, "assistant")
    return None if last is None else "" if last.get("content") is None else _text(last["content"])


def last_text(conversation: Any, role: str) -> str | None:
    """The text of the last message of one role.

    Args:
        conversation: a message or a list of them (a NumPy array, too); anything else holds none.
        role: such as `assistant`.

    Returns:
        None where no message is of that role, or the last one that is has no text, such as a call of a tool.
    """
    last = _last(conversation, role)
    return None if last is None else _text(last.get("content"))


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of one message; empty if it has none, such as a call of a tool."""
    return _text(message.get("content")) or ""


def _last(conversation: Any, role: str) -> dict[str, Any] | None:
    value = plain(conversation)
    messages = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    said = [one for one in messages if isinstance(one, dict) and one.get("role") == role]
    return said[-1] if said else None


def _text(content: Any) -> str | None:
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    parts = [part for part in content if isinstance(part, dict) and part.get("type", "text") in TEXTS]
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    return "".join(texts) if texts else None
