"""Extract the response from an OpenRLHF query, a text that contains prompt and response.

OpenRLHF tokenizes the prompt, cuts it on the left, pads it, and decodes it together with the response
(`openrlhf/utils/agent.py` of 0.11.2). So the query may begin with special tokens or in the middle of the
prompt, and its prompt may differ in blanks, in Unicode's form, in special tokens, or in bytes that were lost. A policy
can write whatever it wants behind the prompt, but nothing before it: the search begins at the start of the query, and
each character of the prompt has to be found. Otherwise the response is unknown, because the reward for a text with the
prompt may be the reward for an example in the prompt.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import Any

from rewardstack.core.messages import UnknownResponse

MAX_HEADER = 64
"""Maximum number of folded characters of a header before a prompt that is sent without the chat template."""
SEED = 16
"""Number of folded characters that must be equal for a prompt that was cut on the left."""
RESUME = 8
"""Number of folded characters that must be equal behind lost bytes."""
MAX_LOST = 64
"""Maximum number of folded characters of the prompt that were lost at one place."""
MAX_STARTS = 64
"""Maximum number of places at which a prompt that was cut may begin, so that the search takes linear time."""
LOST = "\ufffd"
UNKNOWN = (
    "query: it does not begin with the prompt, so it is unknown where the response begins; send in `prompts` what the "
    "tokenizer gets, and raise OpenRLHF's maximum length of prompts if it cuts them"
)

_HEADER = re.compile(r"(?:system|user|human|instruction|question|[#:])*", re.IGNORECASE)
_TOKENS = re.compile(
    r"""
    (?P<lost>(?:\ufffd|<unk>)+)
    | (?P<ignored>\s+ | <\|[^<>|\s]{1,48}\|> | <\uff5c[^<>\uff5c\s]{1,48}\uff5c> | </?[A-Za-z_]{1,32}\d{0,4}>
        | \[/?[A-Z_]{2,16}\])
    | (?P<plain>[!-;=-Z\\-~]{1,64})
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def extract_response(query: Any, prompt: Any) -> Any:
    """Return the response in a query: the text after the prompt.

    Args:
        query: prompt and response, as decoded from tokens.
        prompt: the prompt before tokenization.

    Returns:
        The response with its end tokens, which `pipeline.items.read_request` removes later. `UnknownResponse` if the
        end of the prompt cannot be found with certainty. If query or prompt is not a string, the query unchanged.
    """
    if not (isinstance(query, str) and isinstance(prompt, str)):
        return query
    end = _find_exact(query, prompt)
    end = _find_folded(query, prompt) if end < 0 else end
    return query[end:] if end >= 0 else UnknownResponse(UNKNOWN)


def _find_exact(query: str, prompt: str) -> int:
    """Return the end of an unchanged prompt, before which there are only special tokens and headers; -1 if none."""
    start = query.find(prompt)
    is_first = start >= 0 and _HEADER.fullmatch(_fold(query[:start], MAX_HEADER)[0])
    return start + len(prompt) if is_first else -1


def _find_folded(query: str, prompt: str) -> int:
    """Return the end of a prompt that tokenizing and decoding have changed; -1 if it cannot be found."""
    wanted = _fold(prompt, sys.maxsize)[0].replace(LOST, "")
    folded, ends = _fold(query, 2 * len(wanted))  # between two lost bytes is at least one character
    length = _length(folded, wanted) if wanted else -1
    if length < 0:
        length = _length_of_cut(folded, wanted)
    return -1 if length < 0 else _skip_end(query, ends[length - 1], prompt)


def _fold(text: str, limit: int) -> tuple[str, list[int]]:
    """Return a text without white space, special tokens and accents, in Unicode's form NFKD.

    Args:
        text: the text. Lost bytes become one `LOST`, or nothing at the beginning.
        limit: stop after this many characters.

    Returns:
        The folded text, and for each of its characters the end in `text` of what it is from.
    """
    characters: list[str] = []
    ends: list[int] = []
    for token in _TOKENS.finditer(text):
        kind, (start, end) = token.lastgroup, token.span()
        if kind == "plain":
            characters += token[0]
            ends += range(start + 1, end + 1)
        elif kind == "other" or (kind == "lost" and characters):
            decomposed = LOST if kind == "lost" else unicodedata.normalize("NFKD", token[0])
            found = [one for one in decomposed if not unicodedata.combining(one)]
            characters += found
            ends += [end] * len(found)
        if len(characters) > limit:
            break
    return "".join(characters), ends


def _length(query: str, prompt: str) -> int:
    """Return the length of the prompt at the beginning of a query, both folded; -1 if it is not there."""
    position = at = 0
    for piece in query.split(LOST):
        if position:
            resumed = prompt.find(piece[:RESUME], at, at + MAX_LOST + RESUME) if len(piece) >= RESUME else -1
            if resumed < 0:
                return -1
            at = resumed
        if piece.startswith(rest := prompt[at : at + len(piece)]) and at + len(rest) == len(prompt):
            return position + len(rest)
        if rest != piece:
            return -1
        at += len(piece)
        position += len(piece) + 1
    return -1


def _length_of_cut(query: str, prompt: str) -> int:
    """Return the length of the longest end of the prompt at the beginning of a query; -1 if it is ambiguous.

    It is ambiguous if the prompt begins with its end, because the query may then have all of the prompt.
    """
    seed = query[:SEED].partition(LOST)[0]
    start = prompt.find(seed, 1) if len(seed) == SEED else -1
    for _ in range(MAX_STARTS):
        if start < 0:
            break
        cut = prompt[start:]
        if (length := _length(query, cut)) >= 0:
            return -1 if prompt.startswith(cut) else length
        start = prompt.find(seed, start + 1)
    return -1


def _skip_end(query: str, end: int, prompt: str) -> int:
    """Return `end` plus the white space and the special tokens at the end of the prompt that the query has there."""
    start = max(token.end() for token in _TOKENS.finditer(prompt) if token.lastgroup != "ignored")
    for token in _TOKENS.finditer(prompt, start):
        if query.startswith(token[0], end):
            end += len(token[0])
    return end
