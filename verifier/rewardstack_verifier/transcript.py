"""Split a response that was decoded from tokens into turns, and a turn into reasoning and answer.

Text is markup only where it can only be markup. A string is a transcript if the header of a turn, in the form of a
known family of chat templates, is at its beginning, or directly behind an end token of this family and not inside a
fenced block. The first such family decides, and only its tokens are read. In any other string, only end tokens at the
very end are removed; the rest is the policy's text, whatever it contains.

- A turn of the policy ends at an end token with the header of another turn behind it. A turn of another speaker also
  ends where the policy's turn begins, because some templates have no end token there.
- The last turn is the policy's last one. If it is blank, and the turn before it is the policy's, too, this one counts:
  some templates append a header as a generation prompt.
- Of gpt-oss's messages, only those in the final channel are the answer; analysis is reasoning.
- Tool output in tags or fences inside a turn of the policy counts as such if it is closed, and directly follows a call
  that the policy closed, as in `</search><information>…</information>`.

All functions take linear time. Sources of the templates: the `chat_template` of each model's tokenizer, and for gpt-oss
https://cookbook.openai.com/articles/openai-harmony.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, lru_cache
from itertools import dropwhile, takewhile
from typing import NamedTuple

ASSISTANT, TOOL, REASONING = "assistant", "tool", "reasoning"
"""Roles of turns: the policy's words, tool output, and the analysis channel of gpt-oss."""
AUTO, NONE = "auto", "none"
"""How to read a string: by the first family found, or as one turn of text."""


class Family(NamedTuple):
    """Regular expressions for the tokens of a family of chat templates.

    Args:
        header: the header of a turn; the group `role` is the speaker.
        end: the tokens that end a turn of the policy.
        begin: the tokens that may precede a header at the beginning of a text or turn.
        resume: the tokens with which the policy's turn begins where the turn before it has no end token.
        exchange: a header that is itself the policy's end token, if a header of the policy follows later.
    """

    header: str
    end: str
    begin: str = r"(?!)"
    resume: str = r"(?!)"
    exchange: str = ""


_ROLE = r"(?P<role>[\w.:-]{1,64})"
_LINES = r"[ \t]{0,8}\n{0,2}"
# fmt: off
FAMILIES: Mapping[str, Family] = {
    "chatml": Family(rf"<\|im_start\|>{_ROLE}(?:<\|im_sep\|>|{_LINES})", r"<\|(?:im_end|endoftext)\|>"),
    "llama3": Family(rf"<\|start_header_id\|>{_ROLE}<\|end_header_id\|>{_LINES}",
                     r"<\|(?:eot_id|eom_id|end_of_text)\|>", r"<\|begin_of_text\|>"),
    "llama4": Family(rf"<\|header_start\|>{_ROLE}<\|header_end\|>{_LINES}",
                     r"<\|(?:eot|eom|end_of_text)\|>", r"<\|begin_of_text\|>"),
    "gemma": Family(rf"<start_of_turn>{_ROLE}\n", r"<(?:end_of_turn|eos)>", "<bos>"),
    "gemma4": Family(rf"<\|turn>{_ROLE}\n", r"<(?:turn\||eos)>", "<bos>"),
    "mistral": Family(r"\[(?P<role>INST|TOOL_RESULTS|SYSTEM_PROMPT|AVAILABLE_TOOLS)\]", "</s>", "<s>",
                      r"\[/(?:INST|TOOL_RESULTS)\][ ]?"),
    "deepseek": Family("<\uff5c(?P<role>User|Assistant|tool\u2581outputs?\u2581begin)\uff5c>",
                       "<\uff5cend\u2581of\u2581sentence\uff5c>", "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
                       "<\uff5c(?:Assistant|tool\u2581outputs?\u2581end)\uff5c>(?!\\s?<\uff5ctool\u2581output)"),
    "seed": Family(rf"<seed:bos>{_ROLE}\n", "<seed:eos>"),
    "harmony": Family(r"(?:<\|start\|>(?P<role>[\w.-]{1,64})(?![\w.-])(?:[ ][^<\n]{0,64})?|(?=<\|channel\|>))"
                      r"(?:<\|channel\|>(?P<channel>\w{1,32})(?:[ ][^<\n]{0,128})?(?:<\|constrain\|>[^<\n]{0,32})?)?"
                      r"(?:<\|message\|>|\Z)", r"<\|(?:end|return|call)\|>"),
    "glm": Family(rf"<\|(?P<role>user|assistant|system|tool|observation)\|>{_LINES}",
                  r"<(?:\|(?:end|endoftext|user|observation)\|>|/s>|/tool_call>)", r"\[gMASK\]<sop>|<s>",
                  rf"<\|assistant\|>{_LINES}", r"<\|(?:user(?<=\S<\|user)|observation(?<=\S<\|observation))\|>\n"),
    "kimi": Family(r"<\|im_(?P<role>user|assistant|system)\|>[^<\n]{0,64}<\|im_middle\|>", r"<\|im_end\|>"),
    "minimax": Family(rf"\]~b\]{_ROLE}[^\n]{{0,64}}\n", r"\[e~\[", r"\]~!b\["),
    "granite": Family(rf"<\|start_of_role\|>{_ROLE}<\|end_of_role\|>", r"<\|end_of_text\|>"),
    "nemotron": Family(r"<SPECIAL_1[01]>(?P<role>System|User|Assistant)\n", r"<(?:SPECIAL_12|/TOOLCALL)>",
                       resume=r"\n?<SPECIAL_11>Assistant\n"),
}
# fmt: on
"""Families of chat templates by their names: `chatml` is Qwen's, and `glm` also that of Phi 3 and Zephyr."""
TRANSCRIPTS = (AUTO, NONE, *FAMILIES)
"""Values of `extra_info.transcript`, the default first."""

_ASSISTANTS = frozenset({"assistant", "model", "ai", "chatbot"})
_NAMES = {"inst": "user", "system_prompt": "system"}
"""Roles by the words of templates that name them otherwise."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)$", re.MULTILINE)


_CALLS = "(?:seed:|minimax:)?(?:tool_?calls?|tools?|search|code|python|execute|action|function(?:_?calls?)?|query|sql)"
_OUTPUTS = (
    "(?:tool|function|code|execution|search)_(?:responses?|results?|outputs?)|information|interpreter|results?"
    "|outputs?|observation|execution|response|documents"
)
_CALLS, _OUTPUTS = (f"(?:{names}|{names.upper()})" for names in (_CALLS, _OUTPUTS))
_FENCES = "(?:tool_|code_|execution_)?outputs?|tool_response|execution_results?"
_OUTPUT = re.compile(
    rf"<(?P<tag>{_OUTPUTS})(?:[ ][^<>\n]{{0,200}})?>|<\|(?P<gemma>tool_response)>"
    rf"|<\|begin_(?P<search>search_result|of_documents)\|>|```(?P<fence>{_FENCES})[ \t\r]{{0,8}}\n"
)
_CALL = re.compile(
    rf"""
    (?:
        <(?:/{_CALLS}>|tool_call\|>|\|end_search_query\|>|\uff5ctool\u2581calls\u2581end\uff5c>)
      | ```(?<![^\n]```)[\w+#.-]{{1,32}}[^\n`]{{0,200}}\n[^`]*(?:`{{1,2}}(?!`)[^`]*)*```  # a whole block of code
    )
    \s{{0,16}}(?:(?:user|tool|observation|environment|ipython|function)[ \t]{{0,8}}\n\s{{0,16}})?
    (?=<(?:{_OUTPUTS})[ >]|<\|(?:tool_response>|begin_)|```(?:{_FENCES})\s)
    """,
    re.VERBOSE,
)
"""A closed call, with the beginning of tool output behind it."""

_LAST_TOKENS = re.compile(
    r"(?:\s{0,8}(?:>(?:\|\w{2,40}[A-Za-z]\|<|s/<|soe(?::dees)?<|nrut_fo_dne<|dap<|\|nrut<|21_LAICEPS<"
    r"|\uff5cecnetnes\u2581fo\u2581dne\uff5c<)|\[~e\[|\](?:SOE|\|nrutfodne\|)\[))*"
)
"""End tokens, and unknown special tokens, at the end of a text that is reversed, so that a match takes linear time."""

REASONING_ENDS = {
    "</think>": "<think>",
    "</thinking>": "<thinking>",
    "</seed:think>": "<seed:think>",
    "[/THINK]": "[THINK]",
    "<channel|>": "<|channel>thought",
    "<|END_THINKING|>": "<|START_THINKING|>",
    "\u25c1/think\u25b7": "\u25c1think\u25b7",
    "</thought>": "<thought>",
    "</reasoning>": "<reasoning>",
}
"""End markers of reasoning, with their start markers."""
REASONING_STARTS = {start: end for end, start in REASONING_ENDS.items()}
_REASONING = re.compile("|".join(map(re.escape, (*REASONING_ENDS, *REASONING_STARTS))))
_WORDS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (
        re.compile(r"\s{0,16}analysis(?=[A-Z0-9\"'(\[{\\$*`<]|.*?assistantfinal)", re.DOTALL),
        re.compile("assistantfinal"),
    ),
    (
        re.compile(r"\s{0,16}Here(?: is|'s) my thought process:"),
        re.compile(r"^[ \t]{0,8}Here(?: is|'s) my response:", re.MULTILINE),
    ),
)
"""Words that begin a text with reasoning, and those that end it: of gpt-oss without special tokens, and Granite 3.2."""
_RESPONSE = re.compile(r"\s{0,16}<response>(.*?)(?:</response>\s{0,16})?\Z", re.DOTALL)
"""The answer of Granite 3.3, which has tags behind its reasoning."""


class RoleTurn(NamedTuple):
    """The text of a turn and its role."""

    role: str
    text: str


class Turn(str):
    """The text of one turn. `last_turn` returns a `Turn` unchanged, so that no text is split twice."""

    __slots__ = ()


class _Speaker(NamedTuple):
    """Who says a turn.

    Args:
        role: the speaker.
        is_policy: whether the policy wrote the turn.
        is_answer: whether the policy says it to the user: not gpt-oss's analysis or commentary.
    """

    role: str
    is_policy: bool
    is_answer: bool


_POLICY = _Speaker(ASSISTANT, True, True)
_Span = tuple[_Speaker, int, int]
"""The speaker of a turn, the position behind its header, and the position before its end token."""


class Transcript:
    """A response, split into turns.

    Args:
        response: the whole response.
        spans: the turns in it.
        has_output: whether tool output inside a turn of the policy counts as such.
    """

    def __init__(self, response: str, spans: list[_Span], *, has_output: bool = True) -> None:
        self.response = response
        self._spans = spans
        self._has_output = has_output and _OUTPUT.search(response) is not None

    @cached_property
    def last(self) -> Turn:
        """The policy's last turn, with a line break in place of each tool output."""
        after = dropwhile(lambda span: not span[0].is_policy, reversed(self._spans))
        for speaker, start, end in takewhile(lambda span: span[0].is_policy, after):
            text = self.response[start:end]
            if speaker.is_answer and text and not text.isspace():
                said = "\n".join(piece.text for piece in self._pieces(speaker, text) if piece.role != TOOL)
                if said.strip():
                    return Turn(said)
        return Turn("")

    @cached_property
    def turns(self) -> tuple[RoleTurn, ...]:
        """All turns that are not blank, in order. Each tool output inside a turn is a turn of its own."""
        pieces = (
            piece for speaker, start, end in self._spans for piece in self._pieces(speaker, self.response[start:end])
        )
        return tuple(RoleTurn(role, text) for role, piece in pieces if (text := piece.strip()))

    def _pieces(self, speaker: _Speaker, text: str) -> list[RoleTurn]:
        """Return a turn, split at closed tool output that directly follows a closed call of the policy."""
        role = speaker.role
        if not self._has_output:
            return [RoleTurn(role, text)]
        if not speaker.is_policy:
            return [_other(role, text.strip())]
        pieces, start = list[RoleTurn](), 0
        for opening, closing in _tool_outputs(text):
            pieces += [RoleTurn(role, text[start:opening]), RoleTurn(TOOL, text[opening:closing])]
            start = closing
        return [*pieces, RoleTurn(role, text[start:])]


def _other(role: str, text: str) -> RoleTurn:
    """Return a turn of another speaker. If it is nothing but closed tool output, its tags are removed."""
    output = _OUTPUT.match(text)
    closer = _closer(*output.groups()) if output else ""
    if output is None or not text.endswith(closer, output.end()):
        return RoleTurn(role, text)
    return RoleTurn(TOOL, text[output.end() : len(text) - len(closer)])


class _Tokens:
    """The compiled expressions of a family."""

    def __init__(self, family: Family) -> None:
        if "(?P<channel>" not in family.header:
            family = family._replace(header=f"{family.header}(?P<channel>(?!))?")
        self.first = re.compile(rf"\s{{0,16}}(?:(?:{family.begin})\s{{0,4}}){{0,2}}{family.header}")
        self.end = re.compile(family.end)
        self.resume = re.compile(family.resume)
        self.exchange = re.compile(family.exchange) if family.exchange else None
        alone = rf"(?P<resume>{family.resume})|(?P<exchange>{family.exchange or '(?!)'})"
        self.boundary = re.compile(rf"(?:{family.end}){_behind_end(family)}|{alone}")

    def is_tagged(self, fence: re.Match[str]) -> bool:
        """Return whether there is text behind a fence, before an end token."""
        return bool(self.end.split(fence[2])[0].strip())


def _behind_end(family: Family) -> str:
    """Return the expression for what follows an end token if another turn begins there."""
    return rf"\s{{0,16}}(?:(?:{family.begin})\s{{0,4}})?{family.header}"


_TOKENS = {family: _Tokens(family) for family in FAMILIES.values()}


def _any_pair() -> re.Pattern[str]:
    """Return the expression for an end token with a header behind it, of any family; a group has the family's name."""
    found: list[str] = []
    for first in ("<", r"\["):
        ends = {name: one.end.removeprefix(first) for name, one in FAMILIES.items() if one.end.startswith(first)}
        pairs = (f"(?P<_{name}>(?:{end}){_behind_end(FAMILIES[name])})" for name, end in ends.items())
        found.append(
            rf"{first}(?=(?:{'|'.join(ends.values())})\s{{0,16}}(?:[\[\]]|<[|\uff5csSb]))(?:{'|'.join(pairs)})"
        )
    return re.compile(re.sub(r"\?P<(?!_)\w+>", "?:", "|".join(found)))


_PAIR = _any_pair()
_NEXT = re.compile(r"\s{0,16}")
_CLOSED_CALL = re.compile(f"</{_CALLS}>")


def last_turn(response: str) -> Turn:
    """Return the text of the policy's last turn; see `split_turns`."""
    return response if isinstance(response, Turn) else split_turns(response).last


def split_turns(response: str, transcript: str = AUTO) -> Transcript:
    """Split a response into turns.

    Args:
        response: the text after the prompt, or a whole conversation with the headers of its turns.
        transcript: `auto` to look for a family of templates, `none` to read the text as one turn, or the name of the
            family to read (`FAMILIES`).

    Returns:
        The turns. The last one is empty if the policy said nothing to the user, for example if a response of gpt-oss
        ends in a tool call.
    """
    if transcript == NONE:
        return Transcript(response, [(_POLICY, 0, len(response))], has_output=False)
    for family in _families(response) if transcript == AUTO else [FAMILIES[transcript]]:
        if spans := _split(response, _TOKENS[family]):
            return Transcript(response, spans)
    return Transcript(response, [(_POLICY, 0, len(without_last_tokens(response)))])


def _families(text: str) -> Iterator[Family]:
    """Yield the families with a header at the beginning of a text, or behind their end token, the first one first."""
    known: set[Family] = set()
    if text.lstrip()[:1] in ("<", "[", "]"):
        known.update(family for family, tokens in _TOKENS.items() if tokens.first.match(text))
        yield from known
    for pair in _PAIR.finditer(text):
        family = FAMILIES[(pair.lastgroup or "")[1:]]
        if family not in known:
            known.add(family)
            yield family
    for family, tokens in _TOKENS.items():
        if tokens.exchange and family not in known and tokens.exchange.search(text):
            yield family


def _split(text: str, tokens: _Tokens) -> list[_Span]:
    """Return the turns of a transcript of a family; none if the text is not one."""
    spans: list[_Span] = []
    first = tokens.first.match(text)
    speaker, start = (_speaker(*first.group("role", "channel")), first.end()) if first else (_POLICY, 0)
    has_fences, outside = _FENCE.search(text) is not None, start
    last_resume = max((found.start() for found in tokens.resume.finditer(text)), default=-1) if tokens.exchange else -1
    for boundary in tokens.boundary.finditer(text, start):
        if speaker.is_policy:
            if boundary["resume"] is not None or (boundary["exchange"] and boundary.end() > last_resume):
                continue
            if has_fences:
                outside = _end_of_block(text, outside, boundary, tokens)
                if outside > boundary.start():
                    continue
        kept = _CLOSED_CALL.match(text, boundary.start())
        spans.append((speaker, start, kept.end() if kept else boundary.start()))
        speaker = _speaker(boundary["role"] or (boundary["exchange"] or "").strip("<|>\n") or None, boundary["channel"])
        start = outside = boundary.end()
    return [*spans, (speaker, start, start + len(without_last_tokens(text[start:])))] if spans or first else []


def _end_of_block(text: str, start: int, boundary: re.Match[str], tokens: _Tokens) -> int:
    """Return the end of the fenced block that encloses `boundary`; `start` if it is not in a block.

    It is not if the fences up to the following boundary are balanced without the block, because then the policy was cut
    off in it, and another speaker's text has blocks of its own.

    Args:
        text: the response.
        start: a position outside of blocks, in the same turn.
        boundary: an end token with a header behind it.
        tokens: the tokens of the family.
    """
    *_, (opening, closing) = [(0, 0), *_blocks(text, start, boundary.start(), tokens)]
    mark = _FENCE.match(text, opening) if closing < 0 else None
    fences = (fence for fence in _FENCE.finditer(text, boundary.end()) if mark and fence[1].startswith(mark[1]))
    closer = next(fences, None) if mark else None
    if closer is None or tokens.is_tagged(closer):
        return start
    turn = max(
        (one.end() for one in tokens.boundary.finditer(text, boundary.end(), closer.start())), default=boundary.end()
    )
    following = tokens.boundary.search(text, closer.start())
    own = _blocks(text, turn, following.start() if following else len(text), tokens)
    return closer.end(1) if any(closing < 0 for _, closing in own) else start


@lru_cache(maxsize=64)
def _speaker(name: str | None, channel: str | None) -> _Speaker:
    """Return the speaker that the groups of a header name; a header without a role is the policy's."""
    role = ASSISTANT if name is None else name.lower()
    if role not in _ASSISTANTS:
        return _Speaker(_NAMES.get(role, role), False, False)
    return _Speaker(REASONING if channel == "analysis" else ASSISTANT, True, channel in (None, "final"))


def _tool_outputs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of closed tool output that directly follows a closed call, or output in the same tag.

    A call inside a fenced block is text.
    """
    unclosed, first, position = set[str](), cache(text.find), 0
    blocks = cache(lambda: [*_blocks(text, 0, len(text))])
    for call in _CALL.finditer(text):
        is_opened = call[0][:2] != "</" or 0 <= first(f"<{call[0][2:].partition('>')[0]}") < call.start()
        before = bisect(blocks(), (call.start(), 0)) if call[0][0] == "<" else 0
        is_enclosed = before > 0 and call.start() < blocks()[before - 1][1]
        if call.start() < position or is_enclosed or not is_opened:
            continue
        position, expected = call.end(), ""
        while output := _OUTPUT.match(text, position):
            closer = _closer(*output.groups())
            if closer != (expected := expected or closer):
                break
            end = -1 if closer in unclosed else text.find(closer, output.end() - 1)
            if end < 0:
                unclosed.add(closer)
                break
            end += len(closer)
            yield output.start(), end
            position = _NEXT.match(text, end).end()  # type: ignore[union-attr]


@lru_cache(maxsize=256)
def _closer(tag: str | None, gemma: str | None, search: str | None, fence: str | None) -> str:
    """Return the end of tool output by the groups of `_OUTPUT` at its beginning."""
    if tag or gemma:
        return f"</{tag}>" if tag else f"<{gemma}|>"
    return f"<|end_{search}|>" if search else "\n```"


class Separated(NamedTuple):
    """A turn without its reasoning.

    Args:
        answer: the text outside of the reasoning.
        is_open: whether the last reasoning does not end.
    """

    answer: str
    is_open: bool = False


def split_reasoning(text: str) -> tuple[str, str]:
    """Split a turn into its reasoning and its answer.

    Args:
        text: the text of one turn.

    Returns:
        The reasoning and the answer, without their markers. The reasoning ends at the last end marker (`</think>`,
        `</thinking>`, `</seed:think>`, `[/THINK]`, Gemma 4's `<channel|>` …). It begins after the last start marker of
        the same kind, or at the beginning of the text if there is none. A text without an end marker has no reasoning.
        An end marker in quotation marks or in a fenced block is text.
    """
    if words := _worded_reasoning(text):
        start, end, answer = words
        return (text[start:end], text[answer:]) if end >= 0 else ("", text)
    marker = next((found for found in reversed(_reasoning_markers(text)) if found[0] in REASONING_ENDS), None)
    if marker is None:
        return "", text
    return text[: marker.start()].rpartition(REASONING_ENDS[marker[0]])[2], text[marker.end() :]


def without_reasoning(text: str) -> str:
    """Return a turn without its reasoning; see `separate_reasoning`."""
    return separate_reasoning(text).answer


def separate_reasoning(text: str) -> Separated:
    """Remove the reasoning from a turn of a policy or a judge.

    Args:
        text: the text of one turn.

    Returns:
        The text without reasoning between markers. If a start marker is missing, all text before the end marker is
        reasoning. If an end marker is missing, all text after the start marker is reasoning. Reasoning may also begin
        and end with words, see `_WORDS`.
    """
    if words := _worded_reasoning(text):
        return Separated(text[words[2] :]) if words[1] >= 0 else Separated("", is_open=True)
    markers = _reasoning_markers(text)
    pieces: list[str] = []
    start, begun = 0, ""
    for found in markers:
        token = found[0]
        if begun and REASONING_ENDS.get(token) != begun:
            continue
        if token in REASONING_ENDS:
            pieces = pieces if begun else []
            start, begun = found.end(), ""
        else:
            pieces.append(text[start : found.start()])
            begun = token
    answer = "".join(pieces if begun else [*pieces, text[start:]])
    response = _RESPONSE.match(answer) if markers else None
    return Separated(response[1] if response else answer, bool(begun))


def _worded_reasoning(text: str) -> tuple[int, int, int] | None:
    """Return the start and end of reasoning that begins with words, and the start of the answer.

    The end is -1 if the reasoning does not end. None for a text that does not begin with such words.
    """
    for first, last in _WORDS:
        if start := first.match(text):
            *_, end = [None, *last.finditer(text, start.end())]
            return (start.end(), end.start(), end.end()) if end else (start.end(), -1, len(text))
    return None


def _reasoning_markers(text: str) -> list[re.Match[str]]:
    """Return the markers of reasoning that are neither quoted nor in a fenced block behind the first reasoning."""
    if _REASONING.search(text) is None:
        return []
    opened = _REASONING.match(text, len(text) - len(text.lstrip()))
    position = max(0, text.find(REASONING_STARTS.get(opened[0], opened[0]), opened.end())) if opened else 0
    pieces, end = [], 0
    for opening, closing in _blocks(text, position, len(text)):
        if closing > 0:
            pieces += [text[end:opening], " " * (closing - opening)]
            end = closing
    return [found for found in _REASONING.finditer("".join([*pieces, text[end:]])) if not _is_quoted(found)]


def _blocks(text: str, start: int, end: int, tokens: _Tokens | None = None) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each fenced block between two positions; -1 as the end if it is not closed.

    With `tokens`, an end token of the family ends a fence's line.
    """
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text, start, end):
        is_tagged = tokens.is_tagged(fence) if tokens else bool(fence[2].strip())
        if opening is None:
            opening = fence
        elif fence[1].startswith(opening[1]) and not is_tagged:
            yield opening.start(), fence.end()
            opening = None
    if opening is not None:
        yield opening.start(), -1


def _is_quoted(marker: re.Match[str]) -> bool:
    """Return whether a marker is only mentioned: it is between two identical quotation marks or backticks."""
    text, before = marker.string, marker.string[max(0, marker.start() - 1) : marker.start()]
    return before in ('"', "'", "`") and text.startswith(before, marker.end())


def without_last_tokens(text: str) -> str:
    """Return the text without end tokens, and unknown special tokens such as `<|end_of_solution|>`, at its end."""
    tokens = _LAST_TOKENS.match(text[::-1])
    return text[: len(text) - tokens.end()] if tokens else text
