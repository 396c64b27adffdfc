"""Kinds of settings: each parses the text of a setting, and describes valid values by a JSON schema."""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

MAX_DIGITS = 18
"""Maximum number of digits of an integer."""
DECIMAL = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
RAY_SCHEME = "ray://"
"""Start of a Ray actor's address, `ray://NAMESPACE/NAME`."""
RAY_NAMESPACE = "rewardstack"
"""Namespace of a Ray actor if the setting names none; the namespace of the trainer's Ray job is not used."""
RAY_ACTOR = re.compile(r"(?:([A-Za-z0-9_.-]+)/)?([A-Za-z0-9_.-]+)")
HOST = r"\.?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?"
MIN_KEY_LENGTH = 16
"""Minimum number of characters of a client's API key."""
COMMENT = re.compile(r"\s[;#]")

Schema = dict[str, Any]
"""A JSON schema."""


class InvalidText(ValueError):
    """The text of a setting is not valid.

    Args:
        reason: what is wrong, such as "is not a number"; the error message has the setting's text before it.
        may_show: whether the error may show the text; False if the text may contain a password.
    """

    def __init__(self, reason: str, may_show: bool = True) -> None:
        super().__init__(reason)
        self.may_show = may_show


class Kind(Protocol):
    """A kind of setting."""

    def read(self, text: str) -> Any:
        """Parse the text of a setting and return its value.

        Raises:
            InvalidText: the text is not valid.
        """

    def schema(self) -> Schema:
        """Return a JSON schema for the value in the Helm chart; the schema may accept values that `read` rejects."""


@dataclass(frozen=True)
class Integer:
    """An integer within bounds."""

    low: int
    high: int

    def read(self, text: str) -> int:
        is_integer = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
        if not is_integer or not self.low <= int(text) <= self.high:
            raise InvalidText(f"is not a whole number from {self.low} to {self.high}")
        return int(text)

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Number:
    """A number above 0 and at most `high`. `description` names it in errors."""

    high: float
    description: str = "a number"

    def read(self, text: str) -> float:
        if not DECIMAL.fullmatch(text) or not 0 < float(text) <= self.high:
            raise InvalidText(f"is not {self.description} above 0 and at most {self.high:.15g}")
        return float(text)

    def schema(self) -> Schema:
        return {"type": "number", "exclusiveMinimum": 0, "maximum": self.high}


@dataclass(frozen=True)
class Word:
    """Text that matches a pattern. `expected` describes such a text in errors."""

    pattern: str
    expected: str

    def read(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise InvalidText(f"is not {self.expected}")
        return text

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^({self.pattern})$"}


class OneOf:
    """One of several words. If "" is one of them, the setting may be empty."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def read(self, text: str) -> str:
        if text not in self.values:
            words = [value or "empty" for value in self.values]
            raise InvalidText(f"is not {', '.join(words[:-1])} or {words[-1]}")
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
            raise InvalidText("is not one line of text")
        return text

    def schema(self) -> Schema:
        return {"type": "string"}


class Address(Text):
    """An IP address."""

    def read(self, text: str) -> str:
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            raise InvalidText("is not an IP address such as 127.0.0.1 or 0.0.0.0") from None


class Keys(Text):
    """API keys of clients, separated by commas."""

    def read(self, text: str) -> Any:
        keys = tuple(part.strip() for part in super().read(text).split(","))
        if not text:
            return ()
        if not all(keys) or not text.isascii():
            raise InvalidText("has an empty key, or a key that is not ASCII; write keys like KEY,OTHER-KEY")
        if min(map(len, keys)) < MIN_KEY_LENGTH:
            raise InvalidText(
                f"has a key of fewer than {MIN_KEY_LENGTH} characters; generate one: openssl rand -hex 32"
            )
        return keys


class Hosts(Text):
    """Host names separated by commas; a name with a leading dot matches all subdomains."""

    def read(self, text: str) -> Any:
        hosts = tuple(part.strip().lower() for part in super().read(text).split(",") if part.strip())
        if not all(re.fullmatch(HOST, host) for host in hosts):
            raise InvalidText("is not a list of host names such as rewards.example.org,.cluster.example.org")
        return hosts

    def schema(self) -> Schema:
        return {"type": "string", "pattern": rf"^( *{HOST} *(,|$))*$"}


class Words(Text):
    """Words separated by commas.

    Args:
        pattern: regular expression for a word.
        example: an example of a list, for errors.
    """

    def __init__(self, pattern: str, example: str) -> None:
        self._word = re.compile(pattern)
        self._example = example

    def read(self, text: str) -> Any:
        words = tuple(part.strip() for part in super().read(text).split(",") if part.strip())
        if not all(map(self._word.fullmatch, words)):
            raise InvalidText(f"is not a list such as {self._example}")
        return words


class Files(Text):
    """The path of a file; if `is_list`, any number of paths, separated as in PATH."""

    def __init__(self, is_list: bool = False) -> None:
        self.is_list = is_list

    def read(self, text: str) -> Any:
        parts = super().read(text).split(os.pathsep) if self.is_list else [super().read(text)]
        return tuple(Path(part).expanduser() for part in parts if part)


class Paths(Text):
    """Absolute paths of files and folders, separated as in PATH."""

    def read(self, text: str) -> Any:
        paths = tuple(Path(part).expanduser() for part in super().read(text).split(os.pathsep) if part)
        if not all(path.is_absolute() for path in paths):
            raise InvalidText("is not a list of absolute paths")
        return paths


class Flags(Text):
    """Command line flags in shell syntax."""

    def read(self, text: str) -> Any:
        try:
            flags = tuple(shlex.split(super().read(text)))
        except InvalidText:
            raise
        except ValueError:
            raise InvalidText("is not a list of flags: a quote is not closed") from None
        # supervisord treats the text after ` ;` or ` #` as a comment, even in quotes.
        if COMMENT.search(text):
            raise InvalidText(
                "has a space before `;` or `#`, after which supervisord would ignore the rest; remove the space"
            )
        return flags


ENDPOINT = re.compile(
    r"/(?:chat/completions|v1/(?:completions|models|embeddings|score|classify|pooling|rerank)|get_reward|embed|classify"
    r"|pooling)(?:\?.*)?$"
)
"""Matches the path of an API endpoint at the end of a URL; such a URL is not the base URL of a server."""


class Urls(Text):
    """Base URLs of equivalent servers, separated by commas.

    A `/v1` at the end is removed, because the paths of requests start with `/v1`.
    """

    def read(self, text: str) -> Any:
        parts = [part.strip().rstrip("/") for part in super().read(text).split(",") if part.strip()]
        urls = [url.removesuffix("/v1").rstrip("/") for url in parts]
        for url in urls:
            if "@" in url:
                raise InvalidText("contains a password; use the variable for API keys instead", may_show=False)
            if endpoint := ENDPOINT.search(url):
                base = url[: endpoint.start()].removesuffix("/v1")
                raise InvalidText(f"ends in the path of an endpoint; use the base URL {base}")
            if fault := self._fault(url):
                raise InvalidText(fault)
        return tuple(dict.fromkeys(urls))

    @staticmethod
    def _fault(url: str) -> str:
        """Return what is wrong with a base URL, and the remedy; empty if the URL is valid."""
        if re.search(r"\s", url):
            return "contains a space; separate URLs by commas"
        if mark := re.search("[?#]", url):
            return f"contains `{mark[0]}`; use the base URL {url[: mark.start()]}"
        if "://" not in url and (rest := re.sub("^https?[:/]+", "", url)):
            return f"has no scheme; write {'https' if url.startswith('https') else 'http'}://{rest}"
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError:
            host = None
        if not host:
            return "has no valid host name; write a URL such as http://node-7:8000"
        if parts.scheme not in ("http", "https"):
            return f"has the scheme {parts.scheme}; use http or https"
        try:
            is_valid = parts.port != 0
        except ValueError:
            is_valid = False
        return "" if is_valid else f"has port {parts.netloc.rpartition(':')[2]}, which is not a number from 1 to 65535"


class RayActor(Text):
    """The name of a Ray actor, `NAME` or `NAMESPACE/NAME`.

    The value is a tuple with the actor's address, `ray://NAMESPACE/NAME`; an empty text gives an empty tuple.
    """

    def read(self, text: str) -> Any:
        if not text:
            return ()
        match = RAY_ACTOR.fullmatch(text)
        if match is None:
            raise InvalidText("is not the name of a Ray actor such as reward_inference_service or namespace/name")
        return (f"{RAY_SCHEME}{match[1] or RAY_NAMESPACE}/{match[2]}",)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^({RAY_ACTOR.pattern})?$"}


class Pairs:
    """Pairs `NAME=VALUE` or `NAME: VALUE`, one per line, or separated by `separator` on one line.

    Args:
        separator: character between pairs on one line.
        name: regular expression for a name.
        example: an example of pairs, for errors.
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
            raise InvalidText(f"is not a list such as {self.example}", may_show=False)
        return found

    def schema(self) -> Schema:
        return {"type": "string"}


class RedisUrl(Text):
    """The URL of a Redis server; empty for none."""

    def read(self, text: str) -> str:
        try:
            parts = urlsplit(super().read(text))
            is_valid = parts.scheme in ("redis", "rediss", "unix") and parts.port != 0
        except InvalidText:
            raise
        except ValueError:
            is_valid = False
        if text and not is_valid:
            raise InvalidText("is not a Redis URL such as redis://localhost:6379/0", may_show=False)
        return text


PORT = Integer(1, 65_535)
NAME = Word(r"\S+", "a name without spaces")
OPTIONAL_NAME = Word(r"\S*", "a name without spaces")
SHARE = Number(1)
