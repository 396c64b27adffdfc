"""Large bodies: they cost no server its life and no ordinary sample its score."""

from __future__ import annotations

import gzip
import io
import json
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psutil
import pytest
import requests

from rewardstack.core.jsonl import number_lines, read_pieces
from rewardstack_rules.http.admission import FREE_BYTES, MAX_VALUES, count_values
from rewardstack_rules.http.protocols.body import prune
from rewardstack_rules.http.protocols.scoring import MAX_SAMPLES
from rewardstack_rules.http.protocols.upload import LINE_BYTES, LINE_VALUES
from tests.jobs.conftest import Site, sample, site
from tests.rules.conftest import RewardServer, running
from tests.support.waiting import eventually

JSON = {"Content-Type": "application/json"}
BOMB = b"[]," * 20_000_000
"""60 MB that are 1.4 GB of Python's lists."""
MIB = 2**20
MOST_MEMORY = 600 * MIB
"""Of one process: its body and the text of it, several times over, and what it has loaded."""
TEXT = (
    b'{"items": [{"data_source": "gsm8k", "solution_str": "%b", "ground_truth": "5", '
    b'"extra_info": {"method": "strict"}}]}'
)
GOOD: dict[str, Any] = {"data_source": "gsm8k", "solution_str": "#### 5", "ground_truth": "5"}


def post(server: RewardServer, path: str, body: bytes | Iterator[bytes], **headers: str) -> requests.Response:
    """The reply to a body that calls itself JSON."""
    return server.post(path, data=body, headers=JSON | headers)


def attack(server: RewardServer, body: bytes) -> set[tuple[int, str | None]]:
    """Sends a body six times at once; how it was answered, and when to try again."""
    with ThreadPoolExecutor(6) as senders:
        replies = list(senders.map(lambda _: post(server, "/v1/score", body), range(6)))
    return {(reply.status_code, reply.headers.get("Retry-After")) for reply in replies}


def ordinary(server: RewardServer, until: threading.Event) -> int:
    """Score ordinary samples one after another until something has ended; return how many.

    Raises:
        AssertionError: one was answered otherwise than by its score.
    """
    count = 0
    while not (count and until.is_set()):
        assert server.score(GOOD)[0]["value"] == 1.0
        count += 1
    return count


@pytest.fixture(scope="module")
def attacked(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server of two processes."""
    with running(tmp_path_factory.mktemp("attacked"), "--workers", "2") as one:
        yield one


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        pytest.param(b'{"items": [%b[]]}', 413, id="lists"),
        pytest.param(TEXT, 200, id="text", marks=pytest.mark.nightly),
    ],
)
def test_concurrent_bodies(attacked: RewardServer, form: bytes, answer: int) -> None:
    """Six concurrent bodies of 60 MB end no process, take little memory, and cost no ordinary sample its score."""
    before = psutil.Process(attacked.process.pid).children()
    over = threading.Event()
    with ThreadPoolExecutor(1) as scorer:
        scored = scorer.submit(ordinary, attacked, over)
        try:
            answers = attack(attacked, form % BOMB)
        finally:
            over.set()

    assert before == psutil.Process(attacked.process.pid).children()
    assert max(map(most_memory, before)) < MOST_MEMORY
    assert {(answer, None)} <= answers <= {(answer, None), (503, "1")}
    assert scored.result() > 0


def most_memory(process: psutil.Process) -> int:
    """Bytes that a process had in memory when it had most."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as lines:
        [kilobytes] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(kilobytes) * 1024


@pytest.fixture(scope="module")
def tight(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server of one process that holds 1 MiB of bodies at once, and takes jobs."""
    with site(tmp_path_factory.mktemp("tight"), REWARD_BYTES_IN_FLIGHT=MIB) as one:
        yield one


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_bytes_in_flight(tight: Site, chunked: bool) -> None:
    """While one body holds what may be in flight, larger ones are refused for now, and small ones are scored."""
    body = batch(MIB)

    def other() -> requests.Response:
        return post(tight.server, "/v1/score", iter([body]) if chunked else body)

    eventually(lambda: held(tight.server) == 0)
    with closing(half_sent(tight.server, body)) as sender:
        eventually(lambda: held(tight.server) > 0)
        refused = other()
        assert tight.server.score(GOOD | {"extra_info": {"filler": "x" * (FREE_BYTES - 1000)}})[0]["value"] == 1.0
        sender.sendall(body[len(body) // 2 :])
        assert sender.recv(12) == b"HTTP/1.1 200"
    eventually(lambda: held(tight.server) == 0)

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert "REWARD_BYTES_IN_FLIGHT" in refused.json()["error"]
    assert other().status_code == 200


def test_a_form_in_flight(tight: Site) -> None:
    """So is a form with a file, which is kept while its lines are read."""
    samples = b"\n".join([json.dumps(sample(0) | {"extra_info": {"filler": "x" * 8192}}).encode()] * 256)
    eventually(lambda: held(tight.server) == 0)
    with closing(half_sent(tight.server, batch(MIB))):
        eventually(lambda: held(tight.server) > 0)
        refused = tight.server.post("/jobs", files={"file": samples})
    eventually(lambda: held(tight.server) == 0)

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert tight.server.post("/jobs", files={"file": samples}).status_code == 202


def test_alone(tight: Site) -> None:
    """A body that is larger than all that may be in flight is read where it is alone."""
    eventually(lambda: held(tight.server) == 0)
    assert post(tight.server, "/v1/score", batch(3 * MIB)).status_code == 200


def held(server: RewardServer) -> float:
    """Bytes that the server says it holds."""
    [line] = [line for line in server.get("/metrics").text.splitlines() if line.startswith("rewardstack_body_bytes ")]
    return float(line.split()[1])


def batch(size: int) -> bytes:
    """A sample in about so many bytes."""
    return json.dumps({"items": [GOOD | {"extra_info": {"filler": "x" * size}}]}).encode()


def half_sent(server: RewardServer, body: bytes) -> socket.socket:
    """A connection on which half of a body was sent."""
    host, port = server.url.removeprefix("http://").split(":")
    sender = socket.create_connection((host, int(port)), 60)
    head = (
        f"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    sender.sendall(head.encode() + body[: len(body) // 2])
    return sender


@pytest.fixture(scope="module")
def here(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with every endpoint."""
    with site(tmp_path_factory.mktemp("large")) as one:
        yield one


def test_too_many_samples(here: Site) -> None:
    """More samples than are scored at once are refused, with the number that is taken."""
    reply = here.server.post("/v1/score", {"items": [{"data_source": "gsm8k"}] * (MAX_SAMPLES + 1)})

    assert (reply.status_code, f"at most {MAX_SAMPLES}" in reply.json()["error"]) == (413, True)


DENSE = b"[]," * (MAX_VALUES // 2) + b"[]"
BODIES = {
    "/v1/score": b'{"items": [%b]}',
    "/jobs": b'{"items": [%b]}',
    "/get_reward": b'{"prompts": [%b], "responses": []}',
    "/get_reward?": b'{"query": [%b], "prompts": []}',
    "/get_reward?slime": b'{"prompt": [%b], "response": ""}',
    "/verify": b'{"responses_create_params": {}, "response": {"output": [%b]}}',
    "/seed_session": b'{"any": [%b]}',
    "/aggregate_metrics": b'{"verify_responses": [%b]}',
    "/roll/submit": b'{"prompt": "", "response": "", "reward_info": {"a": [%b]}}',
    "/roll/result": b'{"reward_request_id": [%b]}',
}


@pytest.mark.parametrize("path", BODIES)
def test_too_many_values(here: Site, path: str) -> None:
    """Every endpoint refuses a body of more values than it reads, before it is parsed, and says how many that are."""
    reply = post(here.server, path, BODIES[path] % DENSE)

    assert (reply.status_code, reply.json()["field"]) == (413, "body")
    assert f"more than {MAX_VALUES} values" in reply.json()["error"]


LINE = json.dumps(sample(0)).encode() + b"\n"
LINES = {
    "values": b'{"extra_info": [%b[]]}' % (b"[]," * LINE_VALUES),
    "bytes": b'{"solution_str": "%b"}' % (b"x" * LINE_BYTES),
}


@pytest.mark.parametrize("form", [False, True], ids=["lines", "form"])
@pytest.mark.parametrize("line", LINES)
def test_a_line(here: Site, line: str, form: bool) -> None:
    """A line of a job that is too long, or holds too many values, is refused by its number."""
    data = LINE + LINES[line] + b"\n" + LINE
    sent: dict[str, Any] = {"data": data, "headers": {"Content-Type": "application/jsonl"}}
    reply = here.server.post("/jobs", **({"files": {"file": data}} if form else sent))

    assert (reply.status_code, reply.json()["field"]) == (413, "line 2"), reply.text
    assert line in reply.json()["error"]


@pytest.mark.parametrize("form", [False, True], ids=["lines", "form"])
@pytest.mark.parametrize("blank", [b"\n", b" \r\n"], ids=["empty", "blank"])
def test_blank_lines(here: Site, blank: bytes, form: bool) -> None:
    """Millions of blank lines are read, and counted."""
    count = 2**24 // len(blank)
    data = blank * count + b"no JSON"
    sent: dict[str, Any] = {"data": data, "headers": {"Content-Type": "application/jsonl"}}
    reply = here.server.post("/jobs", **({"files": {"file": data}} if form else sent))

    assert (reply.status_code, reply.json()["field"]) == (400, f"line {count + 1}"), reply.text


@pytest.mark.parametrize("blank", [b"\n", b" \r\n"], ids=["empty", "blank"])
def test_steps_of_blank_lines(blank: bytes) -> None:
    """Blank lines take next to no CPU time: a step of Python for hundreds of them."""
    lines = 2**20
    pieces = [*read_pieces(io.BytesIO(blank * lines + b"no JSON"), LINE_BYTES)]

    assert len(pieces) < lines / 500
    assert [*number_lines(pieces)] == [(lines + 1, b"no JSON")]


@pytest.mark.parametrize("text", [",", "[", '\\"[,', "\\\\,{"])
def test_marks_in_texts(here: Site, text: str) -> None:
    """A text may have as many commas, brackets and quotation marks as it likes."""
    body = TEXT % (text.encode() * MAX_VALUES + b"#### 5")

    assert post(here.server, "/v1/score", body).json()["scores"][0]["value"] == 1.0


def test_a_compressed_bomb(here: Site) -> None:
    """A body that is compressed stays so, and is refused."""
    reply = post(here.server, "/v1/score", gzip.compress(BOMB), **{"Content-Encoding": "gzip"})

    assert (reply.status_code, reply.json()["field"]) == (415, "Content-Encoding")


@pytest.mark.parametrize(
    ("data", "count"),
    [
        ("1", 1),
        ("[]", 2),
        ('{"a": 1}', 2),
        ("[1, 2, [3]]", 5),
        ('[{"a": 1, "b": [2]}, "c"]', 6),
        ('["[[[[[[[[[[[["]', 2),
        (r'["\"[,,,,,,,,,,,,,,"]', 2),
        (r'["\\", 1, "\\\"[,,,,,,,,,,,,", 2]', 5),
        ("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]", 11),
        ('["a", "b", "c", "d", "e", "f", "g", "h", "i"]', 10),
        ('{"a": "", "b": "", "c": "", "d": "", "e": "", "f": "", "g": "", "h": "", "i": ",,,"}', 10),
        ('"' * 100 + "," * 100, 1),
    ],
)
def test_count(data: str, count: int) -> None:
    """Values are counted without what looks like some in texts, up to one more than asked for."""
    assert count == count_values(data.encode(), 10)


def test_memory_of_a_deep_body() -> None:
    """A long text beside deep nesting is read without memory for each of its characters."""
    size = 4_000_000
    body = b'["%b", %b]' % (b'\\"' * (size // 2), b"[" * 1000 + b"]" * 1000)
    tracemalloc.start()
    try:
        prune(body)
        assert tracemalloc.get_traced_memory()[1] < 10 * size
    finally:
        tracemalloc.stop()
