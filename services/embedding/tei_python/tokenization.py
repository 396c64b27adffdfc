"""Texts to token ids, with TEI's limits (core/src/tokenization.rs of its release 1.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.embedding.tei_python.bodies import Input
from services.embedding.tei_python.errors import EmptyError, TeiError, ValidationError

CHARACTERS_PER_TOKEN = 250
"""A text of more characters than this many times the tokens that the model takes is not even tokenised."""
SHORTEN = "shorten it, or set `truncate`"


@dataclass(frozen=True, slots=True)
class Encoding:
    """What the model reads of one input.

    Args:
        ids: of its tokens, special ones included.
        types: of the tokens, for models that take them.
    """

    ids: list[int]
    types: list[int]


class Tokenization:
    """The model's tokenizer, in as many copies as there are ways to truncate: setting them changes a tokenizer.

    Args:
        tokenizer: a `tokenizers.Tokenizer`.
        max_length: tokens that the model takes, special ones included.
        prompts: of the model, by name; None where its configuration has none.
        default_prompt: put before texts whose request names no prompt; None for none.
    """

    def __init__(
        self, tokenizer: Any, max_length: int, prompts: Mapping[str, str] | None, default_prompt: str | None
    ) -> None:
        serialized = tokenizer.to_str()
        self.max_length = max_length
        self._whole = type(tokenizer).from_str(serialized)
        self._whole.no_padding()
        self._whole.no_truncation()
        self._cutting = {}
        for direction in ("left", "right"):
            self._cutting[direction] = type(tokenizer).from_str(self._whole.to_str())
            self._cutting[direction].enable_truncation(max_length, direction=direction)
        self._prompts = prompts
        self._default_prompt = default_prompt or ""

    def encode(
        self, inputs: Sequence[Input], truncate: bool, direction: str, prompt_name: str | None
    ) -> list[Encoding | TeiError]:
        """The tokens of each input, or why it is refused.

        Args:
            inputs: texts, or token ids, which are decoded first.
            truncate: whether too long ones are cut.
            direction: the side that is cut off: left or right.
            prompt_name: of the prompt put before them; None for the default one.
        """
        results: list[Encoding | TeiError | None] = [None] * len(inputs)
        texts: dict[int, tuple[str, bool]] = {}
        for index, value in enumerate(inputs):
            try:
                texts[index] = self._prepare(value, truncate, prompt_name)
            except TeiError as error:
                results[index] = error
        tokenizer = self._cutting[direction] if truncate else self._whole
        for special in (True, False):
            chosen = [index for index, (_, wanted) in texts.items() if wanted is special]
            if chosen:
                batch = [texts[index][0] for index in chosen]
                self._fill(results, chosen, tokenizer.encode_batch_fast(batch, add_special_tokens=special))
        return [result for result in results if result is not None]

    def tokenize(self, text: str, add_special_tokens: bool, prompt_name: str | None) -> list[dict[str, Any]]:
        """The tokens of a text as `/tokenize` shows them.

        Raises:
            TeiError: the text is empty or too long, or the prompt unknown.
        """
        text, _ = self._prepare(text, False, prompt_name)
        encoding = self._whole.encode(text, add_special_tokens=add_special_tokens)
        octets = text.encode()
        starts = _byte_offsets(text)
        shown = []
        rows = zip(encoding.ids, encoding.tokens, encoding.special_tokens_mask, encoding.offsets, strict=True)
        for token, name, special, (begin, end) in rows:
            if special:
                shown.append({"id": token, "text": name, "special": True, "start": None, "stop": None})
                continue
            start, stop = starts[begin], starts[end]
            part = octets[start:stop].decode(errors="replace")
            shown.append({"id": token, "text": part, "special": False, "start": start, "stop": stop})
        return shown

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        """The text of token ids; ids that the tokenizer does not know are left out.

        Raises:
            EmptyError: there are none.
        """
        if not ids:
            raise EmptyError("`ids` is empty: leave empty lists out")
        return str(self._whole.decode(ids, skip_special_tokens=skip_special_tokens))

    def _prepare(self, value: Input, truncate: bool, prompt_name: str | None) -> tuple[str, bool]:
        """The text to be tokenised, and whether special tokens are added to it."""
        if not value:
            raise EmptyError("`inputs` is empty, or holds what is empty: leave that out")
        prompt = self._default_prompt if prompt_name is None else find_prompt(self._prompts, prompt_name)
        limit = self.max_length * CHARACTERS_PER_TOKEN
        if len(value) > limit:
            if not truncate:
                raise ValidationError(f"`inputs` has {len(value)} characters or ids, {limit} at most: {SHORTEN}")
            value = value[:limit]
        if isinstance(value, str):
            return prompt + value, True
        # As in TEI: without a prompt the ids bring their special tokens themselves.
        text = str(self._whole.decode(value, skip_special_tokens=bool(prompt)))
        return prompt + text, bool(prompt)

    def _fill(self, results: list[Encoding | TeiError | None], chosen: Sequence[int], encodings: Sequence[Any]) -> None:
        """Puts what the tokenizer gave for the chosen inputs where it belongs."""
        for index, encoding in zip(chosen, encodings, strict=True):
            ids = encoding.ids
            if len(ids) > self.max_length:
                said = f"`inputs` has {len(ids)} tokens, and the model takes {self.max_length}: {SHORTEN}"
                results[index] = ValidationError(said)
            else:
                results[index] = Encoding(ids, encoding.type_ids)


def find_prompt(prompts: Mapping[str, str] | None, name: str) -> str:
    """The model's prompt of that name.

    Raises:
        ValidationError: there is none.
    """
    if name not in (prompts := prompts or {}):
        known = f"its prompts are {', '.join(prompts)}" if prompts else "it has no prompts"
        raise ValidationError(f"the model has no prompt named {name!r} (`prompt_name`, --default-prompt-name): {known}")
    return prompts[name]


def _byte_offsets(text: str) -> list[int]:
    """For each position between the characters of `text`, the position in its UTF-8."""
    offsets = [0]
    for character in text:
        offsets.append(offsets[-1] + len(character.encode()))
    return offsets
