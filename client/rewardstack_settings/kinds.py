"""Kinds of values: the parser of a setting's text, and the JSON schema of its value."""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

LONGEST = 18
"""Most digits of a whole number."""
DECIMAL = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
RAY_SCHEME = "ray://"
RAY_NAMESPACE = "rewardstack"
"""Default namespace of an actor, even if the trainer's job has another one."""
RAY_ACTOR = re.compile(r"(?:([A-Za-z0-9_.-]+)/)?([A-Za-z0-9_.-]+)")
HOST = r"\.?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?"
SHORTEST_KEY = 16
"""Fewest characters of a client key."""
COMMENT = re.compile(r"\s[;#]")

Schema = dict[str, Any]
"""A JSON schema."""


class Refused(ValueError):
    """A text is not valid for its kind.

    Args:
        why: end of a sentence that starts with the text.
        shown: whether the text may be shown; false if it may contain a password.
    """

    def __init__(self, why: str, shown: bool = True) -> None:
        super().__init__(why)
        self.shown = shown


class Kind(Protocol):
    """A kind of setting."""

    def read(self, text: str) -> Any:
        """Parse a text and return its value.

        Raises:
            Refused: the text is not valid.
        """

    def schema(self) -> Schema:
        """Return the JSON schema of the value, which accepts everything that `read` accepts."""


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds."""

    low: int
    high: int

    def read(self, text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) <= LONGEST
        if not digits or not self.low <= int(text) <= self.high:
            raise Refused(f"is not a whole number from {self.low} to {self.high}")
        return int(text)

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Number:
    """A number above 0; `what` describes it in errors."""

    high: float
    what: str = "a number"

    def read(self, text: str) -> float:
        if not DECIMAL.fullmatch(text) or not 0 < float(text) <= self.high:
            raise Refused(f"is not {self.what} above 0 and at most {self.high:.15g}")
        return float(text)

    def schema(self) -> Schema:
        return {"type": "number", "exclusiveMinimum": 0, "maximum": self.high}


@dataclass(frozen=True)
class Word:
    """Text that matches a pattern; `expected` describes it in errors."""

    pattern: str
    expected: str

    def read(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise Refused(f"is not {self.expected}")
        return text

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^({self.pattern})$"}


class OneOf:
    """One of several words; an empty word means that the stack chooses."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def read(self, text: str) -> str:
        if text not in self.values:
            words = [value or "empty to choose" for value in self.values]
            raise Refused(f"is not {', '.join(words[:-1])} or {words[-1]}")
        return text

    def schema(self) -> Schema:
        return {"enum": list(self.values)}


@dataclass(frozen=True)
class Maybe:
    """A value of another kind, or None for an empty text."""

    kind: Kind

    def read(self, text: str) -> Any:
        return self.kind.read(text) if text else None

    def schema(self) -> Schema:
        return {"anyOf": [{"const": ""}, self.kind.schema()]}


class Text:
    """One line of text."""

    def read(self, text: str) -> str:
        if "\n" in text or "\0" in text:
            raise Refused("is not one line of text")
        return text

    def schema(self) -> Schema:
        return {"type": "string"}


class Address(Text):
    """An IP address."""

    def read(self, text: str) -> str:
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            raise Refused("is not an IP address such as 127.0.0.1 or 0.0.0.0") from None


class Keys(Text):
    """Keys that clients may send, separated by commas."""

    def read(self, text: str) -> Any:
        keys = tuple(part.strip() for part in super().read(text).split(","))
        if not text:
            return ()
        if not all(keys) or not text.isascii():
            raise Refused("has an empty key, or one that is not ASCII; write it like KEY,OTHER-KEY")
        if min(map(len, keys)) < SHORTEST_KEY:
            raise Refused(f"has a key of fewer than {SHORTEST_KEY} characters; generate one: openssl rand -hex 32")
        return keys


class Hosts(Text):
    """Host names separated by commas; one with a leading dot matches all subdomains."""

    def read(self, text: str) -> Any:
        hosts = tuple(part.strip().lower() for part in super().read(text).split(",") if part.strip())
        if not all(re.fullmatch(HOST, host) for host in hosts):
            raise Refused("is not a list of host names such as rewards.example.org,.cluster.example.org")
        return hosts

    def schema(self) -> Schema:
        return {"type": "string", "pattern": rf"^( *{HOST} *(,|$))*$"}


class Words(Text):
    """Words separated by commas.

    Args:
        pattern: of a word.
        example: of a list.
    """

    def __init__(self, pattern: str, example: str) -> None:
        self._word = re.compile(pattern)
        self._example = example

    def read(self, text: str) -> Any:
        words = tuple(part.strip() for part in super().read(text).split(",") if part.strip())
        if not all(map(self._word.fullmatch, words)):
            raise Refused(f"is not a list such as {self._example}")
        return words


class Files(Text):
    """The path of a file, or several separated as in PATH."""

    def __init__(self, several: bool = False) -> None:
        self.several = several

    def read(self, text: str) -> Any:
        parts = super().read(text).split(os.pathsep) if self.several else [super().read(text)]
        return tuple(Path(part).expanduser() for part in parts if part)


class Paths(Text):
    """Absolute paths of files and folders, separated as in PATH."""

    def read(self, text: str) -> Any:
        paths = tuple(Path(part).expanduser() for part in super().read(text).split(os.pathsep) if part)
        if not all(path.is_absolute() for path in paths):
            raise Refused("is not a list of absolute paths")
        return paths


class Flags(Text):
    """Command line flags in shell syntax."""

    def read(self, text: str) -> Any:
        try:
            flags = tuple(shlex.split(super().read(text)))
        except Refused:
            raise
        except ValueError:
            raise Refused("is not a list of flags: a quote does not end") from None
        # supervisord treats the rest as a comment, even in quotes.
        if COMMENT.search(text):
            raise Refused("is not a list of flags: neither ; nor # can follow a space")
        return flags


ENDPOINT = re.compile(
    r"/(?:chat/completions|v1/(?:completions|models|embeddings|score|classify|pooling|rerank)|get_reward|embed|classify"
    r"|pooling)(?:\?.*)?$"
)
"""The end of a URL that is an endpoint's, not a server's."""


class Urls(Text):
    """Base URLs of equivalent servers, separated by commas; a final `/v1` is removed, because paths start with it."""

    def read(self, text: str) -> Any:
        parts = [part.strip().rstrip("/") for part in super().read(text).split(",") if part.strip()]
        urls = [url.removesuffix("/v1").rstrip("/") for url in parts]
        for url in urls:
            if "@" in url:
                raise Refused("contains a password; use the variable for API keys instead", shown=False)
            if endpoint := ENDPOINT.search(url):
                base = url[: endpoint.start()].removesuffix("/v1")
                raise Refused(f"ends in the path of an endpoint; use the base URL {base}")
            if not self._usable(url):
                raise Refused("is not a list of URLs such as http://node-7:8000")
        return tuple(dict.fromkeys(urls))

    @staticmethod
    def _usable(url: str) -> bool:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            return False
        return usable and not re.search(r"[\s?#]", url)


class RayActor(Text):
    """The name of a Ray actor, `NAME` or `NAMESPACE/NAME`; the value is its address."""

    def read(self, text: str) -> Any:
        if not text:
            return ()
        named = RAY_ACTOR.fullmatch(text)
        if named is None:
            raise Refused("is not the name of a Ray actor such as reward_inference_service or namespace/name")
        return (f"{RAY_SCHEME}{named[1] or RAY_NAMESPACE}/{named[2]}",)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^({RAY_ACTOR.pattern})?$"}


class Pairs:
    """Names with values, one per line or separated; `=` or `:` ends a name.

    Args:
        separator: between pairs on one line.
        name: pattern of a name.
        example: of a pair.
    """

    def __init__(self, separator: str, name: str, example: str) -> None:
        self.separator = separator
        self.example = example
        self._pair = re.compile(rf"({name})\s*[:=]\s*([^\x00-\x1f\x7f]*)")

    def read(self, text: str) -> Any:
        parts = text.split("\n") if "\n" in text else text.split(self.separator)
        pairs = [self._pair.fullmatch(part.strip()) for part in parts if part.strip()]
        found = tuple((pair[1], pair[2]) for pair in pairs if pair)
        if len(found) < len(pairs) or not text.isascii():
            raise Refused(f"is not a list such as {self.example}", shown=False)
        return found

    def schema(self) -> Schema:
        return {"type": "string"}


class RedisUrl(Text):
    """The URL of a Redis; empty for none."""

    def read(self, text: str) -> str:
        try:
            parts = urlsplit(super().read(text))
            usable = parts.scheme in ("redis", "rediss", "unix") and parts.port != 0
        except Refused:
            raise
        except ValueError:
            usable = False
        if text and not usable:
            raise Refused("is not a Redis URL such as redis://localhost:6379/0", shown=False)
        return text


PORT = Whole(1, 65_535)
NAME = Word(r"\S+", "a name without spaces")
OPTIONAL_NAME = Word(r"\S*", "a name without spaces")
PART = Number(1)
