"""Find the fenced blocks and the program in a response.

The program is the content of the last closed block with the language's tag. If there is none, the search also includes
blocks whose fences share a line with other text. If still no block has the tag, or if the block with the tag is blank,
the program is the content of the last closed block without a tag.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rewardstack_rules.code.languages import find_language
from rewardstack_verifier.transcript import REASONING_ENDS, REASONING_STARTS, split_reasoning

LINE_END = re.compile(r"\r\n|\r|\n")
FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^\s`{]*)")
ATTACHED_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([^\s`~{]+)\Z")
TAG_NAME_END = re.compile(r"[^\w+#.-]")
"""Matches the first character after the name in a tag, as in `python:main.py` and `python,run`."""
ATTACHED_LENGTH = 40
"""Maximum number of characters of a fence at the end of a line of text, including its tag."""
ANSWER_END = "</answer>"
ANSWER_TAG = re.compile(r"^[ \t]*<answer>[ \t]*(?=`{3}|~{3})|(?:(?<=```)|(?<=~~~))[ \t]*</answer>", re.MULTILINE)
"""Matches `<answer>` before a fence and `</answer>` after one, on the same line."""
QUOTED = re.compile(r"^ {0,3}>(?: |$)", re.MULTILINE)
BYTE_ORDER_MARK = "\ufeff"


class Opening(NamedTuple):
    """A fence that opens a block.

    Args:
        indent: number of columns before the fence.
        mark: the backticks or tildes.
        tag: the word after them, in lower case; empty if there is none.
    """

    indent: int
    mark: str
    tag: str

    def name(self) -> str:
        """Return the name at the start of the tag; empty if the tag does not start with a name."""
        return TAG_NAME_END.split(self.tag, maxsplit=1)[0]


class Block(NamedTuple):
    """A fenced block.

    Args:
        opening: its first fence.
        lines: its lines, without the fences.
        is_closed: whether it has a second fence.
    """

    opening: Opening
    lines: list[str]
    is_closed: bool

    def code(self) -> str:
        """Return the content. If the block is indented, as in a list item, remove the common indentation."""
        code = "\n".join(self.lines) + "\n"
        return textwrap.dedent(code) if self.opening.indent else code


def extract_code(response: str, language: str, how: str) -> str:
    """Return the program of a response; empty if it has none.

    Args:
        response: the policy's text; reasoning before the answer is ignored.
        language: a key of `languages.LANGUAGES`.
        how: `fence` if the program is in a fenced block, or `response` if the whole answer is the program.
    """
    if how == "response":
        return _whole_answer(response).removeprefix(BYTE_ORDER_MARK)
    answer = split_reasoning(response)[1]
    blocks = fenced_blocks(answer)
    tagged = [code for tag, code in blocks if tag and find_language(tag) == language]
    if not tagged:
        tagged = [code for tag, code in _attached_blocks(answer) if tag and find_language(tag) == language]
    untagged = [code for tag, code in blocks if not tag]
    program = next((code for code in (*tagged[-1:], *untagged[-1:]) if code.strip()), "")
    return program.removeprefix(BYTE_ORDER_MARK)


def _whole_answer(response: str) -> str:
    """Return the response without its reasoning.

    Text before an end marker of reasoning is part of the program, unless the response begins with a start marker, or
    the end marker is alone on its line.
    """
    answer = split_reasoning(response)[1]
    before = response[: len(response) - len(answer)]
    is_alone = before.rpartition("\n")[2].strip() in REASONING_ENDS and answer[:1] in ("", "\r", "\n")
    return answer if is_alone or before.lstrip().startswith(tuple(REASONING_STARTS)) else response


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Return the lower-case name in the tag and the content of each closed block.

    `<answer>` tags next to fences are ignored.
    """
    blocks = _blocks(ANSWER_TAG.sub("\n", text), _fence)
    return [(block.opening.name(), block.code()) for block in blocks if block.is_closed]


def _attached_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield blocks as `fenced_blocks` returns them, including those whose fences share a line with other text.

    An opening fence with a language's tag may end a line of text (`Code: ```python`), and blocks may be in a quotation
    (`> `). If no line closes the last block, it ends at its first line that ends in a fence.
    """
    for opening, lines, is_closed in _blocks(QUOTED.sub("", text), lambda line: _fence(line) or _attached_fence(line)):
        if not is_closed:
            stripped = [line.rstrip().removesuffix(ANSWER_END).rstrip() for line in lines]
            end = next((at for at, line in enumerate(stripped) if line.endswith(opening.mark)), None)
            if end is None:
                return
            lines[end:] = [stripped[end].rstrip(opening.mark[0])]
        yield opening.name(), Block(opening, lines, True).code()


def _blocks(text: str, read_opening: Callable[[str], Opening | None]) -> Iterator[Block]:
    """Yield the blocks of a text; `read_opening` returns the opening fence of a line, or None."""
    opening: Opening | None = None
    lines: list[str] = []
    for line in LINE_END.split(text):
        if opening is None:
            opening, lines = read_opening(line), []
        elif _closes(_fence(line), opening):
            yield Block(opening, lines, True)
            opening = None
        else:
            lines.append(line)
    if opening is not None:
        yield Block(opening, lines, False)


def _fence(line: str) -> Opening | None:
    """Return the fence if a line can open or close a block, else None. After the tag, a backtick is not allowed."""
    found = FENCE.match(line)
    if found is None or "`" in line[found.end() :]:
        return None
    return Opening(len(found[1].expandtabs()), found[2], found[3].lower())


def _attached_fence(line: str) -> Opening | None:
    """Return the fence with the tag of a language at the end of a line of text, else None."""
    line = line.rstrip()
    found = ATTACHED_FENCE.search(line, max(0, len(line) - ATTACHED_LENGTH))
    if found is None:
        return None
    opening = Opening(len(line[: found.start()].expandtabs()), found[1], found[2].lower())
    return opening if find_language(opening.name()) else None


def _closes(fence: Opening | None, opening: Opening) -> bool:
    if fence is None or fence.tag or fence.indent > opening.indent + 3:
        return False
    return fence.mark[0] == opening.mark[0] and len(fence.mark) >= len(opening.mark)
