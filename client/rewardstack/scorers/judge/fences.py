"""Foreign text in a prompt: fenced, and without anything that a chat template or the verdict's reader would obey.

A fence is a pair of lines with a tag that is a hash of the text between them, so nobody can write the closing line
without having written the text first. Control-like tokens are broken with a zero-width character: vLLM turns an
`<|im_end|>` in a message into the control token itself.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from itertools import count

BREAK = "\u200b"
"""Zero-width space."""
TAG_BYTES = 8
"""Of a tag: 64 bits."""

_WORDS = (
    *("think", "thinking", "thought", "reasoning", "analysis", "answer", "tool", "tools", "function", "functions"),
    *("system", "user", "assistant", "human", "model", "developer", "turn", "channel", "message"),
    *("s", "bos", "eos", "pad", "unk", "mask", "cls", "sep", "sop", "eop", "eod", "eoh", "eoa", "eot"),
    *("image", "video", "audio", "filename", "reponame", "file", "repo"),
)
_LT, _GT, _BAR = r"[<\uff1c\ufe64]", r"[>\uff1e\ufe65]", r"[|\uff5c]"
_CONTROL = re.compile(
    rf"""
    {_LT}(?=
        {_BAR}                                              # <|im_end|>
      | <?/?SYS>                                            # <<SYS>>
      | /?(?:{"|".join(_WORDS)})[\s/]{{0,4}}{_GT}           # <think>, </s>
      | /?\w{{1,40}}{_BAR}{_GT}                             # <turn|>
      | /?[a-z]\w{{0,30}}_\w{{0,30}}[^<>]{{0,60}}{_GT}      # <start_of_turn>, <tool_call>
      | /?(?:seed:|mask:|unused|0x)\w{{1,30}}{_GT}          # <seed:think>, <unused7>
      | /?(?:problem|reference|candidate)-[0-9a-f]          # our own fences
    )
    | \[(?=/?(?-i:[a-z]?[A-Z][A-Z_]{{1,30}})\]|e~\[)      # [INST], [/INST], [gMASK]
    | \](?=~)                                               # ]~b]
    """,
    re.VERBOSE | re.IGNORECASE,
)
_VERDICT = re.compile(r"REWARD(?=[\s*_`\"']{0,8}:)")


def neutral(text: str) -> str:
    """`text` that reads the same, without control-like tokens, fences of ours, or a verdict's line."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    if "<" in text or "[" in text or "]" in text or not text.isascii():
        text = _CONTROL.sub(rf"\g<0>{BREAK}", text)
    if "REWARD" in text:
        text = _VERDICT.sub(rf"\g<0>{BREAK}", text)
    return text


def fence(name: str, text: str) -> str:
    """`text` between two lines that carry its tag.

    Args:
        name: what it is, such as `candidate`.
        text: any.
    """
    text = neutral(text)
    tag = f"{name}-{_tag(text)}"
    return f"<{tag}>\n{text}\n</{tag}>"


def _tag(text: str) -> str:
    data = text.encode()
    tag = blake2b(data, digest_size=TAG_BYTES).hexdigest()
    salts = count(1)
    while tag in text:
        tag = blake2b(data, digest_size=TAG_BYTES, salt=next(salts).to_bytes(8, "little")).hexdigest()
    return tag
