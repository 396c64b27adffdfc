"""The bodies of TEI's routes (router/src/http/types.rs of its release 1.9), and why one is refused."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import pydantic
from pydantic import AfterValidator, Field

from services.embedding.tei_python.errors import BodyError


class Batch(list[Any]):
    """Several inputs, unlike the token ids of one."""


Input = str | list[int]
"""A text, or its token ids."""
Tokens = Annotated[list[Annotated[int, Field(ge=0, lt=2**32)]], Field(fail_fast=True)]
SEVERAL = AfterValidator(Batch)

# The first that fits counts: an empty list is one empty input where that can be a list.
Inputs = Annotated[
    str | Tokens | Annotated[list[str | Tokens], Field(fail_fast=True), SEVERAL],
    Field(union_mode="left_to_right", description="a text, a list of token ids, or a list of those"),
]
Texts = Annotated[
    str | Annotated[list[str], Field(fail_fast=True), SEVERAL],
    Field(union_mode="left_to_right", description="a text, or a list of texts"),
]
TokenLists = Annotated[
    Tokens | Annotated[list[Tokens], Field(fail_fast=True), SEVERAL],
    Field(union_mode="left_to_right", description="a list of token ids, or a list of those"),
]
Direction = Annotated[Literal["Left", "left", "Right", "right"], AfterValidator(str.lower)]
Dimensions = Annotated[int, Field(ge=1)] | None


class Body(pydantic.BaseModel):
    """A JSON object; fields that the route does not know are ignored. A field's description says what it may hold."""

    model_config = pydantic.ConfigDict(strict=True)


class Parameters(Body):
    """How texts are read."""

    truncate: bool | None = None
    truncation_direction: Direction = "right"
    prompt_name: str | None = None


class Embed(Parameters):
    """`/embed`"""

    inputs: Inputs
    normalize: bool = True
    dimensions: Dimensions = None


class Sentences(Body):
    """What `/similarity` compares."""

    source_sentence: str
    sentences: Annotated[list[str], Field(fail_fast=True)]


class Similarity(Body):
    """`/similarity`"""

    inputs: Sentences
    parameters: Parameters | None = None


class OpenAI(Body):
    """`/v1/embeddings`"""

    input: Inputs
    model: str | None = None
    user: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Dimensions = None


class Tokenize(Body):
    """`/tokenize`"""

    inputs: Texts
    add_special_tokens: bool = True
    prompt_name: str | None = None


class Decode(Body):
    """`/decode`"""

    ids: TokenLists
    skip_special_tokens: bool = True


Kind = TypeVar("Kind", bound=Body)


def read(kind: type[Kind], body: bytes) -> Kind:
    """The fields of a body.

    Raises:
        BodyError: it is no JSON, or not what the route takes.
    """
    try:
        text = body.decode()
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_no_number)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair can be written, and is no text
    except ValueError as error:
        raise BodyError(400, f"the body is no JSON: {error}") from None
    except RecursionError:
        raise BodyError(400, "the body is nested too deep; no field needs more than two lists") from None
    if not isinstance(value, dict):
        raise BodyError(422, "the body should be a JSON object with the fields of this route")
    try:
        return kind.model_validate(value)
    except pydantic.ValidationError as error:
        raise _refusal(kind, error) from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise BodyError(422, f"`{name[:100]}` stands twice in one object of the body; leave one out")
    return members


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _refusal(kind: type[Body], error: pydantic.ValidationError) -> BodyError:
    """Names the first field that is wrong, and what it may hold."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place, said = first["loc"], first["msg"]
    expected = kind.model_fields[str(place[0])].description
    if expected and first["type"] != "missing":
        place, said = place[:1], f"Input should be {expected}"
    return BodyError(422, f"`{'.'.join(map(str, place))}`: {said}")
