"""Is an embedding server in reach, and does all of the way from a reward to its vectors work?

    python tests/test_server_connectivity.py http://localhost:8080 [ANOTHER_URL ...]

Prints a line for each check of each server, whatever failed before, and ends with 1 where one fails. Under pytest it
checks the server in EMBEDDING_SERVER_URL, else one that it starts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rewardstack import Score, score
from rewardstack.errors import RewardstackError
from rewardstack.score import Request

TIMEOUT = 30.0
"""Seconds for each question,"""
BRIEF = 1.0
"""and to a server to which there was no connection."""
LONG = "A sentence that never ends. " * 2000
SPECIAL = 'naïve 北京 🙂 \u202eright to left\u202c "quoted" \\back\\slash {brace} $\\frac{1}{2}$\ttab\nline'
SIMILAR = ("The cat sits on the mat.", "A cat is sitting on a mat.", "Interest rates rose by a quarter point.")


class Server:
    """The server under test.

    Args:
        url: its base URL.
        api_key: to send; empty for none.
    """

    def __init__(self, url: str, api_key: str) -> None:
        self.url = url.rstrip("/")
        self.timeout = TIMEOUT
        self.api_key = api_key
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def get(self, path: str) -> requests.Response:
        """A GET request."""
        return requests.get(self.url + path, headers=self._headers, timeout=self.timeout)

    def embed(self, inputs: Any) -> requests.Response:
        """A request for vectors."""
        body = {"inputs": inputs, "truncate": True}
        return requests.post(f"{self.url}/embed", json=body, headers=self._headers, timeout=self.timeout)

    def vectors(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts; fails where they are none."""
        reply = self.embed(texts)
        assert reply.status_code == 200, f"{reply.status_code}: {reply.text[:200]}"
        found: list[list[float]] = reply.json()
        assert len(found) == len(texts), f"{len(found)} vectors for {len(texts)} texts"
        assert len({len(one) for one in found}) == 1, "vectors of different lengths"
        return found

    def score(self, *pairs: tuple[str, str]) -> list[Score]:
        """The rewards of pairs of response and reference."""
        extra = {"server_url": self.url, "api_key": self.api_key, "timeout": self.timeout}
        return score([Request("embedding_remote_test", *pair, extra) for pair in pairs], on_error="none")


def health(server: Server) -> str:
    """It says that it is healthy."""
    reply = server.get("/health")
    assert reply.status_code == 200, f"{reply.status_code}: {reply.text[:200]}"
    return f"{reply.elapsed.total_seconds() * 1000:.0f} ms"


def info(server: Server) -> str:
    """It names its model and its limits."""
    about = server.get("/info").json()
    return f"{about['model_id']}, up to {about['max_client_batch_size']} texts a request"


def single_embedding(server: Server) -> str:
    """One text has one vector."""
    return f"{len(server.vectors(['A single text.'])[0])} dimensions"


def batch_embedding(server: Server) -> str:
    """Several texts have as many, and equal texts equal ones."""
    started = time.perf_counter()
    first, _, again = server.vectors(["one", "two", "one"])
    assert max(abs(a - b) for a, b in zip(first, again, strict=True)) < 1e-2, "equal texts have different vectors"
    return f"3 texts in {(time.perf_counter() - started) * 1000:.0f} ms"


def empty_text(server: Server) -> str:
    """The server may refuse an empty text; the reward of one is 0 and asks nobody."""
    (one,) = server.score(("", "reference"))
    assert (one.status, one.value) == ("ok", 0.0), one
    return f"the server answers {server.embed('').status_code}; the reward is {one.value}"


def long_text(server: Server) -> str:
    """A text beyond the model's length is cut, not refused."""
    (one,) = server.score((LONG, LONG))
    assert one.status == "ok", one.reason
    return f"{len(LONG):,} characters: reward {one.value:.3f}"


def special_characters(server: Server) -> str:
    """Whatever the text holds arrives as it is."""
    (one,) = server.score((SPECIAL, SPECIAL))
    assert one.status == "ok", one.reason
    assert one.value is not None and one.value > 0.99, f"a text and itself score {one.value}"
    return f"reward {one.value:.3f}"


def reward_function(server: Server) -> str:
    """Texts that mean the same score higher than texts that do not."""
    text, same, other = SIMILAR
    alike, unlike = server.score((text, same), (text, other))
    assert (alike.status, unlike.status) == ("ok", "ok"), alike.reason or unlike.reason
    assert alike.value is not None and unlike.value is not None and alike.value > unlike.value, (alike, unlike)
    return f"{alike.value:.3f} for the same, {unlike.value:.3f} for another meaning"


CHECKS: tuple[Callable[[Server], str], ...] = (
    *(health, info, single_embedding, batch_embedding),
    *(empty_text, long_text, special_characters, reward_function),
)


def check_all(server: Server) -> int:
    """Runs every check and prints what it found; returns how many failed."""
    failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            print(f"ok      {name:<20} {check(server)}")
        except requests.ConnectionError:
            failed += 1
            server.timeout = BRIEF
            print(f"FAILED  {name:<20} no connection to {server.url}: is it up, and its port open to this machine?")
        except (AssertionError, requests.RequestException, RewardstackError, ValueError, KeyError, TypeError) as error:
            failed += 1
            print(f"FAILED  {name:<20} {error}")
    return failed


class TestServerConnectivity(unittest.TestCase):
    """The checks, under pytest."""

    def test_every_check_passes(self) -> None:
        """A server that is given, or started here, passes every check."""
        from tests.support.embedding_url import embedding_url

        with embedding_url() as url:
            self.assertEqual(0, check_all(Server(url, os.environ.get("EMBEDDING_SERVER_API_KEY", ""))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("EMBEDDING_SERVER_URL") or "http://localhost:8080"
    parser.add_argument("urls", nargs="*", default=default.split(","), help=f"of the servers (default: {default})")
    parser.add_argument("--api-key", default=os.environ.get("EMBEDDING_SERVER_API_KEY", ""))
    options = parser.parse_args()
    failed = 0
    for url in options.urls:
        if len(options.urls) > 1:
            print(f"{url}:")
        failed += check_all(Server(url.strip(), options.api_key))
    print(f"{failed} failed" if failed else f"all {len(CHECKS) * len(options.urls)} checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
