"""Bodies are refused in TEI's words, without a model: the rows of tests/cases/tei.json that are about bodies."""

from __future__ import annotations

from typing import Any

import pytest

from services.embedding.tei_python import bodies
from services.embedding.tei_python.json_reader import BodyError
from tests.embedding_server.conftest import TEI

STRUCTS = {
    "/embed": bodies.EMBED,
    "/similarity": bodies.SIMILARITY,
    "/v1/embeddings": bodies.OPENAI,
    "/tokenize": bodies.TOKENIZE,
    "/decode": bodies.DECODE,
}
MALFORMED = [row for row in TEI["rows"] if "the JSON body" in str(row["reply"]) or "as JSON" in str(row["reply"])]


@pytest.mark.parametrize("row", MALFORMED, ids=lambda row: row["name"].replace(" ", "-"))
def test_says_what_tei_says(row: dict[str, Any]) -> None:
    """A body that cannot be read is refused with the status, the words and the position that TEI gives."""
    with pytest.raises(BodyError) as refused:
        bodies.read(STRUCTS[row["request"]["path"]], row["request"]["text"].encode())
    assert (row["reply"]["status"], row["reply"]["text"]) == (refused.value.status, str(refused.value))


def test_there_are_such_rows() -> None:
    """The table has malformed bodies for every route that reads one."""
    assert set(STRUCTS) == {row["request"]["path"] for row in MALFORMED}


def test_fields_have_their_defaults() -> None:
    """A body that names nothing but its inputs gets TEI's defaults for the rest."""
    fields = bodies.read(bodies.EMBED, b'{"inputs":"a"}')
    assert fields == {
        "inputs": "a",
        "truncate": None,
        "truncation_direction": "right",
        "prompt_name": None,
        "normalize": True,
        "dimensions": None,
    }


@pytest.mark.parametrize(
    ("inputs", "batch"),
    [('"a"', False), ("[1, 2]", False), ("[]", False), ('["a"]', True), ("[[1, 2]]", True), ("[[]]", True)],
)
def test_token_ids_are_told_from_batches(inputs: str, batch: bool) -> None:
    """A list of numbers is one input, a list of anything else several."""
    fields = bodies.read(bodies.EMBED, f'{{"inputs":{inputs}}}'.encode())
    assert batch is isinstance(fields["inputs"], bodies.Batch)


@pytest.mark.parametrize(
    "body",
    [b'{"inputs":' + b"[" * 100_000, b'{"x":' + b'{"x":' * 100_000, b'{"inputs":"' + b"\\ud800" * 100_000 + b'"}'],
    ids=["arrays", "objects", "surrogates"],
)
def test_hostile_bodies_are_refused(body: bytes) -> None:
    """Depth and broken text by the hundred thousand are refused like a single one."""
    with pytest.raises(BodyError):
        bodies.read(bodies.EMBED, body)
