"""Make untrusted text safe in a prompt: fence it, and neutralize control tokens and fake verdicts in it.

A fence is a pair of lines around the text. Both lines have a tag, which is a hash of the text, so the text cannot
contain its own closing line. A zero-width character splits everything that looks like a control token, because vLLM
converts `<|im_end|>` in a message to the control token. The verdict marker `REWARD:` becomes lower case, which the
parser ignores.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from itertools import count
from unicodedata import normalize

from rewardstack.scorers.judge.verdict import VERDICT_MARKER


class Fenced(str):
    """A text that already has fences, so that templates do not add them again."""

    __slots__ = ()


SPLITTER = "\u034f"
"""The combining grapheme joiner, which is inserted into control tokens.

It has no width, and is kept by tokenizers that drop zero-width characters such as U+200B.
"""
TAG_BYTES = 8
"""Size of the hash in a tag, in bytes."""

_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f]"
)
"""Invisible control and format characters to remove.

If a policy inserts one of them into a control token, a tokenizer that drops the character would restore the token.
"""
_JOINER = re.compile(r"(?<=[\x00-~\uff1c\uff5c])[\u034f\u200c\u200d\ufe00-\ufe0f]+")
"""Joiners and variation selectors to remove: those after ASCII characters and full-width `<` and `|`.

After emoji and letters of some scripts they have a meaning and are kept.
"""

_VARIATION = re.compile(r"[\u034f\ufe00-\ufe0f]+")
_LOOKALIKE = re.compile(
    r"(?:[^\W\d_a-z][\u034f\ufe00-\ufe0f]{0,4}){6}(?=(?:[^\w\n]|_){0,40}?[:\uff1a\ufe55\ufe13\u2236\ua789\u02d0\u05c3])"
)
"""Matches six letters of any script or width, but not a to z, before a character that looks like a colon. Such letters
may imitate the verdict marker `REWARD:`."""

_WORDS = (
    "html|head|body|title|meta|link|style|script|div|span|ul|ol|li|dl|dt|dd|table|thead|tbody|tfoot|tr|td|th|caption|em|"
    "strong|small|sub|sup|code|pre|br|hr|form|input|button|label|select|option|textarea|nav|main|section|article|"
    "header|footer|aside|figure|canvas|svg|path|iframe|blockquote|center|font|tt|del|ins|kbd|var|"
    "int|long|short|char|bool|boolean|float|double|void|string|str|number|any|object|auto|byte|unsigned|integer|"
    "vector|map|set|pair|list|queue|stack|deque|tuple|array|optional|bitset|iostream|cstdio|cstdlib|cstring|cctype|"
    "climits|cmath|cassert|cstdint|algorithm|numeric|utility|functional|memory|iomanip|sstream|fstream|limits|random|"
    "chrono|thread|lambda|module|stdin|stdout|unknown|name|key|value|type|args|arguments|address|package|version|date|"
    "host|port|url|numerator|denominator|item|index|length|width|height|size|count|"
    "instance|command|locals|data|tag|outfile|dict|console|empty|variable|setup|obj|group|big"
)
"""Words that are common in angle brackets in code, so they do not count as control tokens; other single words do."""
_GT, _BAR = r"[>\uff1e\ufe65]", r"[|\uff5c]"
_END = rf"[\s/]{{0,4}}{_GT}"
_CONTROL = re.compile(
    rf"""
    [<\uff1c\ufe64\[\]>|\uff5c](?:
    (?<=[<\uff1c\ufe64])(?=
        /?{_BAR}                                            # <|im_end|>
      | <?/?SYS>                                            # <<SYS>>
      | \[[^\[\]<>\n]{{1,80}}\]{_GT}                        # <[begin_of_image]>
      | /?(?=(?:[A-Za-z][a-z]{{1,30}}|[a-z]?[A-Z]{{2,30}}|s){_END})(?!(?i:{_WORDS}){_END})  # <think>, <AI>, </s>
      | /?\w{{0,30}}[^\W\x00-\x7f][\w\u200c\u200d]{{0,30}}{_END}  # <用户>
      | /?[a-z]{{2,20}}\d{{3,6}}{_END}                         # <loc0001>
      | /?\w{{1,40}}{_BAR}{_GT}                             # <turn|>
      | /?[A-Za-z]\w{{0,30}}_\w{{0,30}}[^<>]{{0,60}}{_GT}   # <start_of_turn>, <tool_call>
      | /?[A-Za-z]\w{{0,30}}:\w{{1,40}}{_END}               # <seed:think>, <minimax:tool_call>
      | /?(?:unused|0x)\w{{1,30}}{_GT}                      # <unused7>
      | /?(?i:problem|reference|candidate|criteria|tool)-[0-9A-Fa-f]      # fences of this module
    )
    | (?<=\[)(?=
        {_BAR}[^|\uff5c\n]{{1,40}}{_BAR}\]                  # [|user|]
      | /?[a-z]?[A-Z][A-Z_]{{1,30}}\d{{0,6}}\]              # [INST], [gMASK], [UNUSED_TOKEN_7]
      | /?[a-z]{{3,30}}(?:_[a-z]{{1,30}}){{0,3}}_\d{{1,6}}\]  # [control_7], [extra_id_0]
      | /?[a-z]{{2,30}}(?:_[a-z]{{1,30}}){{1,3}}_id\]       # [start_header_id]
      | /?unused\d{{1,6}}\]                                 # [unused1]
      | @\w{{1,30}}@\]                                      # [@BOS@]
      | e~\[                                                # [e~[
    )
    | (?<=\])(?=~|!\w{{0,4}}~|<\])                          # ]~b], ]~!b[, ]<]image[>[
    | (?<=>)(?=>[A-Z][A-Z_]{{1,40}}\d{{0,6}}<<)             # >>ANSWER<<
    | (?<=\uff5c)(?=[A-Z][A-Z_]{{1,30}}\uff5c)               # |DSML| with full-width bars
    | (?<=\|)(?=\|\|[A-Z][A-Z_]{{1,30}}\|\|\|)               # |||IP_ADDRESS|||
    )
    """,
    re.VERBOSE,
)


def neutralize(text: str) -> str:
    """Return a text that looks nearly the same, but in which control tokens, fences and `REWARD:` have no effect."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    text = _INVISIBLE.sub("", text)
    if not text.isascii():
        text = _JOINER.sub("", text)
        if "REWARD" in _normalize(text):
            text = _LOOKALIKE.sub(_replace_lookalike, text)
    text = _CONTROL.sub(lambda match: match[0] + SPLITTER, text)  # twice as fast as a replacement string
    return VERDICT_MARKER.sub(lambda match: match[0].lower(), text)


def _replace_lookalike(match: re.Match[str]) -> str:
    """Return `reward` for a word that looks like `REWARD`; return any other word unchanged."""
    return "reward" if _normalize(match[0]) == "REWARD" else match[0]


def _normalize(text: str) -> str:
    """Return `text` in normal form (NFKC), without joiners and variation selectors."""
    return normalize("NFKC", _VARIATION.sub("", text))


def fence(name: str, text: str) -> str:
    """Return the neutralized text between two lines with a tag.

    Args:
        name: the kind of text, such as `candidate`; the tag starts with it.
        text: the untrusted text.
    """
    text = neutralize(text)
    tag = f"{name}-{_make_tag(text)}"
    return f"<{tag}>\n{text}\n</{tag}>"


def _make_tag(text: str) -> str:
    data = text.encode()
    tag = blake2b(data, digest_size=TAG_BYTES).hexdigest()
    salts = count(1)
    while tag in text:
        tag = blake2b(data, digest_size=TAG_BYTES, salt=next(salts).to_bytes(8, "little")).hexdigest()
    return tag
