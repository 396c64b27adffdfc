"""Read the last assistant turn from a response that was decoded from tokens.

A response starts inside an assistant turn, because the prompt ends with the header of this turn. If special tokens are
kept when decoding, the response also contains end tokens, and the turns of tools and users. `all_turns` returns every
turn with its role, and `last_turn` returns the last message of the policy. These rules apply:

- A header (`<|im_start|>user`) starts a turn of the role that it names. The last message is the last assistant turn.
  An empty assistant turn right after another assistant turn is ignored, because some chat templates append one as a
  generation prompt.
- Text after an end token is dropped until a header or tool output follows.
- In gpt-oss's harmony format, only the final channel is the answer; analysis and commentary are not.
- Tool output is removed, such as `<tool_response>…</tool_response>`, `<information>…</information>` and code blocks
  whose language is `output`. A closing tag without an opening tag is text. An opening tag that is never closed hides
  the text up to the next end token, header or `</think>`, or up to later tool output with this tag that is closed.
- A special token between two identical quotation marks or backticks is text.

Tool calls and reasoning are written by the policy and are kept. If a trainer decodes with `skip_special_tokens=True`,
only tags such as `<tool_response>` remain. Turns are then not guessed from names of roles: a line that is only
`assistant` is text. All functions take linear time.

The supported chat templates are those of Qwen (ChatML), Llama 3, Gemma 1 to 4, Mistral, DeepSeek, Seed-OSS, gpt-oss,
Phi, GLM, Kimi, MiniMax and Granite. Gemma 4: https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

MAX_CHARACTERS = 2_000_000
"""Maximum length of a response to parse; a longer response would block the event loop for seconds."""

_ALWAYS_TOOL_OUTPUT = (
    "tool_responses?|tool_results?|tool_outputs?|function_responses?|function_results?|information|interpreter"
    "|execution_(?:results?|outputs?)|code_outputs?|search_results?"
)
_AFTER_CALLS = "outputs?|observation|execution"
"""Tags that mark tool output only right after a tool call. Elsewhere, they may contain the answer, as in `<output>`."""
_CALL = re.compile(
    r"(?:</(?:tool_call|tool|search|code|python|execute|action|function_call|query)>|(?<!`)```)\s{0,8}\Z"
)
_CALL_LENGTH = 32
_FENCES = "(?:tool_|code_|execution_)?outputs?|tool_response|execution_results?"

_MARKER = re.compile(
    rf"""
    <(?:
        # The end of a turn.
        (?P<end>\|(?:im_end|eot_id|eom_id|end|endoftext|end_of_text|return|call|endofturn|END_OF_TURN_TOKEN)\|>
            |/s>|eos>|end_of_turn>|turn\|>|seed:eos>|\uff5cend\u2581of\u2581sentence\uff5c>)
        # The beginning of a text.
      | (?P<begin>s>|bos>|sop>|seed:bos>(?!\w{{1,32}}\n)|\|(?:begin_of_text|startoftext)\|>
            |\uff5cbegin\u2581of\u2581sentence\uff5c>)
        # The header of a turn.
      | (?:
            \|im_start\|>\s{{0,3}}(?P<role_chatml>[\w.-]{{0,32}})(?:<\|im_sep\|>)?
          | \|start_header_id\|>\s{{0,3}}(?P<role_llama>[\w.-]{{0,32}})\s{{0,3}}(?:<\|end_header_id\|>)?
          | start_of_turn>\s{{0,3}}(?P<role_gemma>\w{{0,32}})
          | \|turn>\s{{0,3}}(?P<role_gemma_4>\w{{0,32}})
          | seed:bos>(?P<role_seed>\w{{1,32}})(?=\n)
          | \|start\|>\s{{0,3}}(?P<role_harmony>[\w.-]{{0,64}})[^<\n]{{0,64}}
          | \|im_(?P<role_kimi>user|assistant|system)\|>(?:[^<\n]{{0,64}}<\|im_middle\|>)?
          | \|start_of_role\|>\s{{0,3}}(?P<role_granite>\w{{0,32}})(?:<\|end_of_role\|>)?
          | \|(?P<role_alone>[Uu]ser|[Aa]ssistant|[Ss]ystem|observation|tool|tool_response)\|>
          | \uff5c(?P<role_deepseek>User|Assistant)\uff5c>
        )[ \t]{{0,8}}\n{{0,2}}
        # The channel of a message, and the message.
      | \|channel\|>\s{{0,3}}(?P<channel>\w{{0,32}})
      | \|(?P<message>message)\|>
        # The end of reasoning. It ends unclosed tool output, too: the reasoning may only have mentioned the tag.
      | (?P<reasoning>/think(?:ing)?|/seed:think)>
        # Tool output.
      | (?P<open_tag>{_ALWAYS_TOOL_OUTPUT})(?:[ ][^<>\n]{{0,200}})?>
      | (?P<open_result>results?)>(?<!["']<result>)(?<!["']<results>)
      | (?P<open_after_call>{_AFTER_CALLS})>
      | /(?P<close_tag>{_ALWAYS_TOOL_OUTPUT}|results?|{_AFTER_CALLS})>
      | [|\uff5c]tool[\u2581_](?P<open_deepseek>outputs?)[\u2581_]begin[|\uff5c]>
      | [|\uff5c]tool[\u2581_](?P<close_deepseek>outputs?)[\u2581_]end[|\uff5c]>
      | \|(?P<open_gemma_4>tool_response)>
      | (?P<close_gemma_4>tool_response)\|>
      | start_(?P<open_function>function_response)>
      | end_(?P<close_function>function_response)>
      | \|begin_(?P<open_search>search_result|of_documents)\|>
      | \|end_(?P<close_search>search_result|of_documents)\|>
    )
    | \[(?:
        (?P<role_user>INST)\]
      | /(?P<role_after_user>INST)\][ ]?
      | (?P<open_mistral>TOOL_RESULTS)\]
      | /(?P<close_mistral>TOOL_RESULTS)\][ ]?
      | (?P<end_minimax>e~\[)
    )
    | \]~(?:b\](?P<role_minimax>\w{{1,32}})\n?|(?P<begin_minimax>!b\[))
    | ```(?<![^\n>]```)(?:
        (?P<open_fence>{_FENCES})[ \t\r]{{0,8}}(?![^\n])
      | (?P<close_fence>)[ \t\r]{{0,8}}(?![^\n])
    )
    """,
    re.VERBOSE,
)
"""Delimiters of turns, messages and tool output. The name of the group that matches starts with the kind of marker."""

_TRAILING_TOKEN = re.compile(r"<\|[A-Za-z]\w{2,40}\|>\s{0,8}\Z")
_TRAILING_LENGTH = 64

_DIALOGUE = re.compile(r"\n\n(?:Human|User):")

_REASONING_ENDS = {
    "</think>": "<think>",
    "</thinking>": "<thinking>",
    "</seed:think>": "<seed:think>",
    "[/THINK]": "[THINK]",
    "<channel|>": "<|channel>thought",
    "<|END_THINKING|>": "<|START_THINKING|>",
    "\u25c1/think\u25b7": "\u25c1think\u25b7",
}
"""End markers of reasoning, with their start markers."""

_ASSISTANTS = frozenset({"assistant", "model", "ai"})


_REASONING = re.compile("|".join(map(re.escape, sorted({*_REASONING_ENDS, *_REASONING_ENDS.values()}, key=len)[::-1])))

ASSISTANT, TOOL, REASONING = "assistant", "tool", "reasoning"
"""Roles that `all_turns` returns for the policy, tool output, and the analysis channel of harmony."""


class RoleTurn(NamedTuple):
    """The text of a turn and its role."""

    role: str
    text: str


class Turn(str):
    """The text of one turn. `last_turn` returns a `Turn` unchanged, so that no text is parsed twice."""

    __slots__ = ()


def last_turn(response: str) -> Turn:
    """Return the text of the policy's last turn.

    The result has no end tokens, headers or tool output. Each tool output is replaced by a line break.

    Args:
        response: the text after the prompt, or a whole conversation with the headers of its turns.

    Returns:
        The text of the last assistant turn, which may be empty, for example if a harmony response ends in a tool call.
        A response without markers, or with more than `MAX_CHARACTERS`, is returned whole. In all cases, unknown special
        tokens at the end are removed.
    """
    if isinstance(response, Turn):
        return response
    marker = _MARKER.search(response) if len(response) <= MAX_CHARACTERS else None
    if marker is None:
        return Turn(_without_trailing_tokens(response))
    return Turn(_without_trailing_tokens(_read(response, marker).last_turn()))


def all_turns(response: str) -> list[RoleTurn]:
    """Return all turns of a response that are not blank, in order.

    Args:
        response: as in `last_turn`.

    Returns:
        The turns with their roles: `ASSISTANT` for the policy's words, `TOOL` for tool output, `REASONING` for the
        analysis channel of harmony, else the role in the turn's header.
    """
    marker = _MARKER.search(response) if len(response) <= MAX_CHARACTERS else None
    turns = [RoleTurn(ASSISTANT, response)] if marker is None else _read(response, marker).turns()
    stripped = (RoleTurn(role, _without_trailing_tokens(text).strip()) for role, text in turns)
    return [turn for turn in stripped if turn.text]


def _read(response: str, marker: re.Match[str] | None) -> _Reader:
    """Read a response, and return the reader. `marker` is the first marker in the response."""
    reader = _Reader(_tool_outputs(response, marker.start() if marker else 0))
    position = 0
    while marker is not None:
        reader.read(response[position : marker.start()])
        position = reader.handle(marker)
        marker = _MARKER.search(response, position)
    reader.read(response[position:])
    return reader


def split_reasoning(text: str) -> tuple[str, str]:
    """Split a turn into its reasoning and its answer.

    Args:
        text: the text of one turn.

    Returns:
        The reasoning and the answer, without their markers. The reasoning ends at the last end marker
        (`</think>`, `</thinking>`, `</seed:think>`, `[/THINK]`, Gemma 4's `<channel|>` …). It begins after the last
        start marker of the same kind, or at the beginning of the text if there is none. A text without an end marker
        has no reasoning. A quoted end marker is text.
    """
    start, end = max((_find_last(text, end), end) for end in _REASONING_ENDS)
    if start < 0:
        return "", text
    return text[:start].rpartition(_REASONING_ENDS[end])[2], text[start + len(end) :]


def _find_last(text: str, marker: str) -> int:
    """Return the position of the last marker that is not quoted; -1 if there is none."""
    start = text.rfind(marker)
    while start >= 0 and _has_quotes(text, start, start + len(marker)):
        start = text.rfind(marker, 0, start)
    return start


def without_reasoning(text: str) -> str:
    """Return a turn without its reasoning.

    Args:
        text: the text of one turn.

    Returns:
        The text without reasoning between markers. If a start marker is missing, all text before the end marker is
        reasoning. If an end marker is missing, all text after the start marker is reasoning.
    """
    pieces: list[str] = []
    start, begun = 0, ""
    for found in _REASONING.finditer(text):
        token = found[0]
        if _is_quoted(found) or (begun and _REASONING_ENDS.get(token) != begun):
            continue
        if token in _REASONING_ENDS:
            pieces = pieces if begun else []
            start, begun = found.end(), ""
        else:
            pieces.append(text[start : found.start()])
            begun = token
    return "".join(pieces if begun else [*pieces, text[start:]])


def without_dialogue(text: str) -> str:
    """Return the text before the first paragraph that begins with `Human:` or `User:`.

    Base models invent such turns. A paragraph of this kind at the beginning of the text is kept. `last_turn` does not
    remove such paragraphs, because they may be part of the task (a play, a log).
    """
    for speaker in _DIALOGUE.finditer(text):
        if text[: speaker.start()].strip():
            return text[: speaker.start()]
    return text


class _State(Enum):
    SPEAKING = auto()
    """The assistant's words."""
    HIDDEN = auto()
    """In harmony format: the assistant's analysis or commentary, or the header of one of its messages."""
    IN_TOOL_OUTPUT = auto()
    """In an assistant turn, after the opening tag of tool output that is never closed."""
    ENDED = auto()
    """After the end token of an assistant turn."""
    OTHER = auto()
    """A turn of another role."""


class _Reader:
    """Collects all turns and the text of the last assistant turn.

    Args:
        tool_outputs: end position of each complete tool output, by its start position.
    """

    def __init__(self, tool_outputs: dict[int, int]) -> None:
        self._tool_outputs = tool_outputs
        self._state = _State.SPEAKING
        self._pieces: list[str] = []
        self._is_blank = True
        self._previous = ""  # text of the previous turn, used if the current turn stays blank
        self._channel = ""
        self._is_start = True  # no header, tool output or end token yet; an end token before any text is ignored
        self._is_instruction = False  # in Mistral's `[INST]`
        self._open = ""  # opening tag of the unclosed tool output
        self._role = ""  # role of the current turn if it is not the assistant's
        self._is_new = True  # the next text starts a turn
        self._turns: list[tuple[str, list[str]]] = []

    def last_turn(self) -> str:
        """Return the text of the last assistant turn.

        If it is blank and directly follows another assistant turn, return the text of the other turn.
        """
        return self._previous if self._is_blank else "".join(self._pieces)

    def read(self, text: str) -> None:
        """Add text between two markers."""
        if text and self._state is not _State.ENDED:
            self._add(self._speaker(), text)
        if text and self._state is _State.SPEAKING:
            self._pieces.append(text)
            self._is_blank = self._is_blank and not text.strip()

    def _speaker(self) -> str:
        """Return the role of the current text, as `all_turns` names it."""
        if self._state is _State.HIDDEN:
            return REASONING if self._channel == "analysis" else ASSISTANT
        return {_State.OTHER: self._role or "user", _State.IN_TOOL_OUTPUT: TOOL}.get(self._state, ASSISTANT)

    def _add(self, role: str, text: str) -> None:
        if self._is_new or not self._turns or self._turns[-1][0] != role:
            self._turns.append((role, []))
        self._turns[-1][1].append(text)
        self._is_new = False

    def turns(self) -> list[RoleTurn]:
        """Return all turns, including blank ones."""
        return [RoleTurn(role, "".join(pieces)) for role, pieces in self._turns]

    def handle(self, marker: re.Match[str]) -> int:
        """Handle a marker.

        Returns:
            The position at which reading continues.
        """
        group = marker.lastgroup or ""
        kind = group.partition("_")[0]
        value = marker[group]
        if _is_quoted(marker):
            self.read(marker[0])
        elif kind == "role":
            self._start(marker, group, value)
        elif kind == "end":
            self._end()
        elif kind == "begin":
            self._keep_unless_blank(marker[0])
        elif kind == "open":
            return self._tool_output(marker)
        elif kind == "close" and self._state is not _State.OTHER:
            self.read(marker[0])
        elif kind == "reasoning":
            self._end_reasoning(marker[0])
        elif kind == "channel":
            self._start_channel(value)
        elif kind == "message":
            self._start_message()
        return marker.end()

    def _start(self, marker: re.Match[str], group: str, role: str) -> None:
        """Start a turn of a role."""
        if group == "role_after_user":
            if not (self._is_instruction and self._state is _State.OTHER):
                self.read(marker[0])
                return
            role = "assistant"
        self._is_instruction = group == "role_user"
        self._is_start = False
        self._role = "user" if group == "role_user" else role.lower()
        self._is_new = True
        if role.lower() in _ASSISTANTS:
            self._start_turn(previous="" if self._state is _State.OTHER else self.last_turn())
        else:
            self._state = _State.OTHER

    def _start_turn(self, previous: str) -> None:
        self._previous = previous
        self._pieces = []
        self._is_blank = True
        self._channel = ""
        self._state = _State.SPEAKING

    def _end(self) -> None:
        if self._is_start and self._is_blank:
            self._pieces = []
        elif self._state is not _State.OTHER:
            self._is_start = False
            self._state = _State.ENDED

    def _keep_unless_blank(self, token: str) -> None:
        """Keep a begin-of-text token as text (`<s>` is also an HTML tag), but drop it at the start of a turn."""
        if not self._is_blank:
            self.read(token)

    def _end_reasoning(self, tag: str) -> None:
        """End unclosed tool output at the end of reasoning, because the reasoning only mentioned the tag."""
        if self._state is _State.IN_TOOL_OUTPUT:
            self._state = _State.SPEAKING
        self.read(tag)

    def _start_channel(self, channel: str) -> None:
        self._is_new = True
        if self._state in (_State.SPEAKING, _State.HIDDEN):
            self._start_turn(previous=self.last_turn())
            self._channel = channel
            self._state = _State.HIDDEN

    def _start_message(self) -> None:
        if self._state is _State.HIDDEN and self._channel == "final":
            self._state = _State.SPEAKING

    def _tool_output(self, marker: re.Match[str]) -> int:
        """Skip a tool's output.

        Returns:
            The end of the tool output; the end of its opening tag if the output is not closed, or if the turn is not
            the assistant's.
        """
        if self._state is _State.OTHER:
            self._role = TOOL
            return marker.end()
        end = self._tool_outputs.get(marker.start())
        self._is_start = False
        if end is None:
            if marker.lastgroup == "open_after_call" and not _is_after_call(marker):
                self.read(marker[0])
            elif self._state is _State.SPEAKING:
                self._pieces.append("\n")
                self._state = _State.IN_TOOL_OUTPUT
                self._open = marker[0]
            return marker.end()
        if self._state is _State.ENDED:
            self._start_turn(previous=self.last_turn())
        elif self._state is _State.SPEAKING:
            self._pieces.append("\n")
        elif self._state is _State.IN_TOOL_OUTPUT and marker[0] == self._open:
            self._state = _State.SPEAKING
        self._add(TOOL, marker.string[marker.start() : end])
        return end


def _tool_outputs(text: str, start: int) -> dict[int, int]:
    """Return the end position of each complete tool output by its start position.

    Tags of the same name nest, because a tool may print them. Fences do not nest.

    Args:
        text: the response.
        start: position of the first marker.
    """
    ends: dict[int, int] = {}
    open_starts: dict[str, list[int]] = {}
    for marker in _MARKER.finditer(text, start):
        kind, _, template = (marker.lastgroup or "").partition("_")
        if kind not in ("open", "close") or (kind == "open" and _is_quoted(marker)):
            continue
        is_fence = template == "fence"
        name = _name(template, marker)
        starts = open_starts.setdefault(name, [])
        if kind == "close":
            if starts:
                ends[starts.pop()] = marker.end()
        elif not (is_fence and starts) and (template != "after_call" or _is_after_call(marker)):
            starts.append(marker.start())
    return ends


def _name(template: str, marker: re.Match[str]) -> str:
    """Return the key that the opening and the closing marker of tool output share."""
    if template == "fence":
        return template
    return f"{'tag' if template in ('result', 'after_call') else template} {marker[marker.lastgroup or 0]}"


def _is_quoted(marker: re.Match[str]) -> bool:
    """Return whether a marker is only mentioned: it is between two identical quotation marks or backticks."""
    return _has_quotes(marker.string, marker.start(), marker.end())


def _has_quotes(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 1) : start]
    return before in ('"', "'", "`") and text.startswith(before, end)


def _is_after_call(tag: re.Match[str]) -> bool:
    """Return whether a tag follows the end of a tool call or of a fence, with only white space between them."""
    return _CALL.search(tag.string, max(0, tag.start() - _CALL_LENGTH), tag.start()) is not None


def _without_trailing_tokens(text: str) -> str:
    """Return the text without trailing tokens of unknown templates, such as `<|end_of_solution|>`."""
    end = len(text)
    while token := _TRAILING_TOKEN.search(text, max(0, end - _TRAILING_LENGTH), end):
        end = token.start()
    return text[:end]
