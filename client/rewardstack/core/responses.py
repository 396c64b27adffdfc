"""The response in what OpenRLHF has scored: a query, which is prompt and response in one text.

It is decoded from tokens with the special ones kept, so one may stand before the prompt, and one at the end.
"""

from __future__ import annotations

import re
from typing import Any

BEFORE_PROMPT = 64
"""Characters that may stand before the prompt: the token that begins a text."""
END_TOKEN = re.compile(
    r"(?:<\|[^<>|]{1,40}\|>|</s>|<eos>|<end_of_turn>|<\uff5cend\u2581of\u2581sentence\uff5c>)\s{0,8}\Z"
)
END_TOKEN_CHARACTERS = 64


def response_in(query: Any, prompt: Any) -> Any:
    """The response: what stands behind the prompt, without the tokens that end a text.

    Args:
        query: prompt and response, as decoded from tokens.
        prompt: as the trainer had it; where the query does not begin with it (the trainer cuts long prompts), all of
            the query is the response. What is no text is not looked for, and nothing is looked for in it.
    """
    if not (isinstance(query, str) and isinstance(prompt, str)):
        return query
    start = query.find(prompt, 0, len(prompt) + BEFORE_PROMPT)
    start = 0 if start < 0 else start + len(prompt)
    end = len(query)
    while found := END_TOKEN.search(query, max(start, end - END_TOKEN_CHARACTERS), end):
        end = found.start()
    return query[start:end]
