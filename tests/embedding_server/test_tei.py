"""The server answers as Text Embeddings Inference does, status and fields, for each row of tests/cases/tei.json."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from typing import Any

import pytest

from tests.embedding_server.conftest import TEI
from tests.embedding_server.served import EmbeddingServer
from tests.support.table import Table


def written_out(value: Any) -> Any:
    """A value with every {repeat, times} in it written out."""
    if isinstance(value, dict) and value.keys() == {"repeat", "times"}:
        return value["repeat"] * value["times"]
    if isinstance(value, dict):
        return {key: written_out(part) for key, part in value.items()}
    return [written_out(part) for part in value] if isinstance(value, list) else value


def ask(server: EmbeddingServer, request: dict[str, Any]) -> tuple[int, bytes]:
    """Status and body of the answer to a row's request."""
    body = written_out(request["json"]) if "json" in request else None
    sent = json.dumps(body).encode() if "json" in request else request.get("text", "").encode()
    kind = request.get("type", "application/json")
    headers = {**request.get("headers", {}), **({"Content-Type": kind} if kind else {})}
    return server.ask(request["method"], request["path"], sent, **headers)


def shape(value: Any) -> list[int]:
    """The lengths of nested arrays, whose numbers must be finite."""
    if isinstance(value, list):
        shapes = {tuple(shape(part)) for part in value}
        assert len(shapes) == 1
        return [len(value), *shapes.pop()]
    assert isinstance(value, int | float) and math.isfinite(value)
    return []


def embedding(value: Any) -> list[float]:
    """The numbers of an embedding of `/v1/embeddings`, which may be base64 of float32."""
    octets = base64.b64decode(value) if isinstance(value, str) else b""
    return list(struct.unpack(f"<{len(octets) // 4}f", octets)) if octets else value


def contains(value: Any, part: Any) -> bool:
    """Whether `value` has all that `part` has, field by field."""
    if isinstance(part, dict):
        return all(key in value and contains(value[key], inner) for key, inner in part.items())
    if isinstance(part, list):
        return len(value) == len(part) and all(map(contains, value, part))
    return bool(value == part)


def check(reply: dict[str, Any], body: bytes) -> None:
    """Fails unless the body is as the row says; its keys are explained in the file."""
    if "text" in reply:
        assert reply["text"] == body.decode()
    if "holds" in reply:
        assert reply["holds"] in body.decode().splitlines()
    if reply.keys() <= {"status", "text", "holds"}:
        return
    value = json.loads(body)
    if "refusal" in reply:
        message, kind = ("message", "type") if "code" in value else ("error", "error_type")
        assert value == {
            message: value[message],
            kind: reply["refusal"],
            **({"code": reply["status"]} if "code" in value else {}),
        }
        assert reply["names"] in value[message]
    if "json" in reply:
        assert reply["json"] == value
    if "contains" in reply:
        assert contains(value, reply["contains"]), value
    if "keys" in reply:
        assert sorted(reply["keys"]) == sorted(value)
    if "shape" in reply:
        assert reply["shape"] == shape(value)
    if "vectors" in reply:
        assert reply["vectors"] == shape([embedding(row["embedding"]) for row in value["data"]])


@pytest.mark.timeout(600)
def test_answers_as_tei_does(serve: Callable[[str], EmbeddingServer], table: Table) -> None:
    """A request of the table gets the status and the fields that TEI gives it, and a refusal names what is wrong."""
    for row in TEI["rows"]:
        with table.case(row["name"]):
            status, body = ask(serve(row["server"]), row["request"])
            assert (row["reply"]["status"], "") == (status, body.decode() if status != row["reply"]["status"] else "")
            check(row["reply"], body)


def test_every_row_names_its_source() -> None:
    """Each row says in which file and line of TEI's repository its answer stands, and no two have one name."""
    assert all(":" in row["source"] and row["source"].split(":")[0].endswith(".rs") for row in TEI["rows"])
    assert len(TEI["rows"]) == len({row["name"] for row in TEI["rows"]})
