"""Find the program in a response: the content of its last closed code fence with the language's tag.

If there is no such fence, the program is the content of the last closed fence without a tag.
"""

from __future__ import annotations

import re
import textwrap

from rewardstack_rules.code.languages import find_language
from rewardstack_verifier.transcript import split_reasoning

LINE_END = re.compile(r"\r\n|\r|\n")
FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^\s`{]*)")


def extract_code(response: str, language: str, how: str) -> str:
    """Return the program of a response; empty if it has none.

    Args:
        response: the policy's text; reasoning before the answer is ignored.
        language: a key of `languages.LANGUAGES`.
        how: `fence` for the program in a fence, or `response` if the whole answer is the program.
    """
    answer = split_reasoning(response)[1]
    if how == "response":
        return answer
    blocks = _blocks(answer)
    tagged = [code for tag, code in blocks if tag and find_language(tag) == language]
    untagged = [code for tag, code in blocks if not tag]
    return next((code for code in (*tagged[-1:], *untagged[-1:]) if code.strip()), "")


def _blocks(text: str) -> list[tuple[str, str]]:
    """Return the closed fenced blocks, each with its tag in lower case."""
    blocks: list[tuple[str, str]] = []
    opening: re.Match[str] | None = None
    lines: list[str] = []
    for line in LINE_END.split(text):
        fence = _fence(line)
        if opening is None:
            opening, lines = fence, []
        elif fence is not None and _closes(fence, opening):
            code = "\n".join(lines) + "\n"
            blocks.append((opening[3].lower(), textwrap.dedent(code) if opening[1] else code))
            opening = None
        else:
            lines.append(line)
    return blocks


def _fence(line: str) -> re.Match[str] | None:
    """Return the match if a line can open or close a block, else None. After the tag, a backtick is not allowed."""
    found = FENCE.match(line)
    return None if found is None or "`" in line[found.end() :] else found


def _closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    has_room = len(fence[1].expandtabs()) <= len(opening[1].expandtabs()) + 3
    return has_room and not fence[3] and fence[2][0] == opening[2][0] and len(fence[2]) >= len(opening[2])
