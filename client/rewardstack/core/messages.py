"""Chat messages, as trainers hand them over: `{"role", "content"}`, whose content is a text, or a list of parts of
which some are `{"type": "text", "text"}` (the form of OpenAI's chat completions, and of TRL's conversational data).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rewardstack.core.json_types import plain


def is_conversation(value: Any) -> bool:
    """Whether a value is a message, or a list (or NumPy array) of messages of which there is at least one."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return len(value) > 0 and all(isinstance(one, Mapping) and "role" in one for one in value)
    return isinstance(value, Mapping) and "role" in value


def response_text(response: Any) -> str | None:
    """A response as text: the string that it is, or what the assistant says last in its messages; else None."""
    return response if isinstance(response, str) else last_text(response, "assistant")


def last_text(conversation: Any, role: str) -> str | None:
    """The text of the last message of one role.

    Args:
        conversation: a message or a list of them (a NumPy array, too); anything else holds none.
        role: such as `assistant`.

    Returns:
        None where no message is of that role, or the last one that is has no text, such as a call of a tool.
    """
    value = plain(conversation)
    messages = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    said = [one.get("content") for one in messages if isinstance(one, dict) and one.get("role") == role]
    return _text(said[-1]) if said else None


def _text(content: Any) -> str | None:
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    parts = [part for part in content if isinstance(part, dict) and part.get("type", "text") == "text"]
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    return "".join(texts) if texts else None
