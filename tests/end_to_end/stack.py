"""The stack that is checked: its addresses, scoring by them, and plain HTTP for what is no scoring."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import Any, NamedTuple

from rewardstack import Score, score
from rewardstack.score import OnError
from rewardstack.settings import DEFAULTS, Settings
from tests.end_to_end import samples
from tests.end_to_end.samples import Sample

HTTP_SECONDS = 60.0
POLL_SECONDS = 0.5


class Unmet(AssertionError):
    """Something that must hold does not; says what."""


class Reply(NamedTuple):
    """An answer over HTTP, whatever its status."""

    status: int
    headers: Message
    data: bytes

    def json(self) -> Any:
        """Its body; raises Unmet where it is no JSON."""
        try:
            return json.loads(self.data)
        except ValueError:
            raise Unmet(f"{self.status}: {self.data[:200]!r} is no JSON") from None


@dataclass(frozen=True)
class Stack:
    """Where a stack is; the keys of its services are those of the environment, as for every client.

    Args:
        reward_url: of the reward server.
        judge_url: of the judge; empty where the stack has none.
        embedding_url: of the embedding server; empty where the stack has none.
        loading_seconds: that a stopped model server may take until it answers again.
    """

    reward_url: str
    judge_url: str = ""
    embedding_url: str = ""
    loading_seconds: float = 1800.0

    @property
    def services(self) -> tuple[str, ...]:
        """What the stack has."""
        there = {"rules": self.reward_url, "judge": self.judge_url, "embedding": self.embedding_url}
        return tuple(name for name, url in there.items() if url)

    def samples(self) -> list[Sample]:
        """New ones for each service that the stack has."""
        makers: dict[str, Callable[[], list[Sample]]] = {
            "rules": samples.rules,
            "judge": samples.judge,
            "embedding": samples.embedding,
        }
        return [sample for service in self.services for sample in makers[service]()]

    def score(self, some: Sequence[Sample], *, direct: bool = False, on_error: OnError | None = None) -> list[Score]:
        """One score for each sample, in order.

        Args:
            some: the samples.
            direct: whether judge and embedding server are asked themselves, with the cache where the environment names
                it; else everything goes through the reward server, as from a trainer that knows no other address.
            on_error: what a sample without a score is worth; None for its route's own policy.
        """
        addresses = {"REWARD_SERVER_URL": self.reward_url}
        if direct:
            addresses |= {"LLM_JUDGE_SERVER_URL": self.judge_url, "EMBEDDING_SERVER_URL": self.embedding_url}
            addresses["REWARD_CACHE_URL"] = os.environ.get("REWARD_CACHE_URL", "")
        with _environment(addresses):
            return score([sample.request for sample in some], on_error=on_error)

    def ask(self, url: str, body: Any = None, *, method: str = "", **headers: str) -> Reply:
        """What a URL answers; an error is an answer too.

        Args:
            url: of one of the services.
            body: sent as JSON; bytes are sent as they are; None for a GET.
            method: where it is neither GET nor POST.
            headers: with `_` for `-`; `Authorization` beats the environment's key.

        Raises:
            Unmet: nothing answers there.
        """
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        given = {name.replace("_", "-"): text for name, text in headers.items()}
        request = urllib.request.Request(url, data, {"Content-Type": "application/json", **self._key(url), **given})
        request.method = method or request.get_method()
        try:
            with urllib.request.urlopen(request, timeout=HTTP_SECONDS) as reply:
                return Reply(reply.status, reply.headers, reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers, error.read())
        except (OSError, HTTPException) as error:
            raise Unmet(f"{url}: {error}") from error

    def _key(self, url: str) -> dict[str, str]:
        settings = Settings.from_env()
        keys = {
            self.judge_url: settings.judge_api_key,
            self.embedding_url: settings.embedding_api_key,
            self.reward_url: settings.reward_server_api_key,
        }
        key = next((key for base, key in keys.items() if base and url.startswith(f"{base}/")), "")
        return {"Authorization": f"Bearer {key}"} if key else {}


@contextmanager
def _environment(addresses: Mapping[str, str]) -> Iterator[None]:
    """The client's settings are these addresses and the environment's keys; it remembers nothing itself."""
    kept = {name: os.environ[name] for name in DEFAULTS if name in os.environ}
    keys = {name: text for name, text in kept.items() if name.endswith("_API_KEY")}
    try:
        _replace(kept, {**keys, **addresses, "REWARD_CACHE_ITEMS": "0"})
        yield
    finally:
        _replace(dict.fromkeys(DEFAULTS, ""), kept)


def _replace(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name in old:
        os.environ.pop(name, None)
    os.environ.update(new)


def wait_until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    """Returns when something holds.

    Raises:
        Unmet: it does not within `seconds`; says `what` was waited for.
    """
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Unmet(f"not after {seconds:g} s: {what}")
        time.sleep(POLL_SECONDS)


def require(fact: bool, otherwise: str) -> None:
    """Returns where `fact` holds.

    Raises:
        Unmet: it does not; `otherwise` says what is so instead.
    """
    if not fact:
        raise Unmet(otherwise)


def require_right(some: Sequence[Sample], scores: Sequence[Score]) -> None:
    """Returns where every sample has a right score.

    Raises:
        Unmet: one has not; says which and why.
    """
    require(len(some) == len(scores), f"{len(scores)} scores for {len(some)} samples")
    faults = [fault for sample, one in zip(some, scores, strict=True) if (fault := sample.fault(one))]
    require(not faults, "; ".join(faults))
