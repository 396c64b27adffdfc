"""What bodies mean, and that no body is more than refused; without a model."""

from __future__ import annotations

import json

import pytest

from services.embedding.tei_python import bodies
from services.embedding.tei_python.errors import BodyError
from tests.support.table import Table

DEEP = 100_000


def test_fields_have_their_defaults() -> None:
    """A body that names nothing but its inputs gets TEI's defaults for the rest."""
    assert bodies.read(bodies.Embed, b'{"inputs":"a"}').model_dump() == {
        "inputs": "a",
        "truncate": None,
        "truncation_direction": "right",
        "prompt_name": None,
        "normalize": True,
        "dimensions": None,
    }


@pytest.mark.parametrize(
    ("inputs", "batch"),
    [("a", False), ([1, 2], False), ([], False), (["a"], True), ([[1, 2]], True), ([[]], True), ([[1], "a"], True)],
)
def test_token_ids_are_told_from_batches(inputs: object, batch: bool) -> None:
    """A list of numbers is one input, a list of anything else several."""
    read = bodies.read(bodies.Embed, json.dumps({"inputs": inputs}).encode()).inputs
    assert (read, batch) == (inputs, isinstance(read, bodies.Batch))


HOSTILE = [
    (b'{"inputs":' + b"[" * DEEP + b"]" * DEEP + b"}", 400, "nested too deep"),
    (b'{"x":' * DEEP + b"1" + b"}" * DEEP, 400, "nested too deep"),
    (b'{"inputs":"' + b"\\ud800" * DEEP + b'"}', 400, "surrogates not allowed"),
    (b'{"inputs":["a","\\ud800"]}', 400, "surrogates not allowed"),
    (b'{"inputs":"\xff"}', 400, "no JSON"),
    (b"\xff\xfe{\x00}\x00", 400, "no JSON"),
    (b'{"inputs":"a","dimensions":' + b"9" * DEEP + b"}", 400, "no JSON"),
    (b'{"inputs":"a","dimensions":1e999}', 422, "`dimensions`"),
    (b'{"inputs":[NaN]}', 400, "NaN"),
    (b'{"inputs":"a","x":-Infinity}', 400, "-Infinity"),
    (b'{"inputs":"a","x":{"y":1,"y":2}}', 422, "`y` stands twice"),
    (b"{" + b",".join(b'"%d":1' % index for index in range(DEEP)) + b',"7":1}', 422, "`7` stands twice"),
    (b'{"inputs":["a"' + b",5" * DEEP + b"]}", 422, "`inputs`"),
    (b'{"inputs":[[1],' + b"[-1]," * DEEP + b"2]}", 422, "`inputs`"),
    (b'{"inputs":[true]}', 422, "`inputs`"),
    (b'{"inputs":[1.0]}', 422, "`inputs`"),
    (b'{"inputs":"a","normalize":"true"}', 422, "`normalize`"),
]


def test_hostile_bodies_are_refused(table: Table) -> None:
    """Depth, size and broken values by the hundred thousand are refused like a single one, in a short message."""
    for body, status, words in HOSTILE:
        with table.case(repr(body[:40])):
            with pytest.raises(BodyError, match=words) as refused:
                bodies.read(bodies.Embed, body)
            assert status == refused.value.status
            assert len(str(refused.value)) < 300
