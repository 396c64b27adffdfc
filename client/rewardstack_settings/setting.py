"""A setting: its name, default, kind, readers and help."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rewardstack_settings.kinds import Files, Kind, Refused, Schema

SERVICE_LINK = "tcp://"
"""Prefix of the variables that Kubernetes sets for services, such as REWARD_PORT=tcp://10.0.0.1:80."""

NEAR = 0.9
"""Minimum similarity, from 0 to 1, at which a variable counts as a misspelling of a setting."""


class Malformed(ValueError):
    """The value of a setting is invalid.

    Args:
        name: of the setting.
        message: with the name and the valid values, without secrets.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class Setting:
    """One setting.

    Args:
        name: of the variable.
        default: text to use if it is unset or empty.
        kind: kind of its value.
        readers: services and programs that read it, by their names in `READERS` of the table.
        help: description in one line.
        secret: whether its value is never shown, and passed as a file to services that support it.
    """

    name: str
    default: str
    kind: Kind
    readers: tuple[str, ...]
    help: str
    secret: bool = False

    def read(self, text: str) -> Any:
        """Parse a text and return the value; use the default for an empty text or a Kubernetes service link.

        Raises:
            Malformed: the text is not valid.
        """
        try:
            return self.kind.read(self.default if text.startswith(SERVICE_LINK) else text or self.default)
        except Refused as refused:
            shown = "its value" if self.secret or not refused.shown else repr(text)
            raise Malformed(self.name, f"{self.name}: {shown} {refused}") from None

    def schema(self) -> Schema:
        """Return the JSON schema of the value, with default and help."""
        value = self.read("")
        default = value if isinstance(value, int | float) else self.default
        return {**self.kind.schema(), "default": default, "description": self.help}

    def files(self, text: str, folder: Path) -> tuple[Path, ...]:
        """Return the files in a text; empty for a setting of another kind.

        Args:
            text: the value.
            folder: base of relative paths.

        Raises:
            Malformed: a file does not exist.
        """
        paths = self.read(text) if isinstance(self.kind, Files) else ()
        for path in paths:
            if not (folder / path).is_file():
                why = f"{self.name}: there is no file {path}; correct the path, or unset {self.name}"
                raise Malformed(self.name, why)
        return tuple((folder / path).resolve() for path in paths)


@dataclass(frozen=True)
class Section:
    """A group of settings.

    Args:
        title: of the section in `.env` and in the documentation.
        settings: in order.
        place: `.env` for settings of the stack, which have a line there; `environment` for settings of one process,
            which are only documented; `compose` for those that only compose files name, with their defaults.
    """

    title: str
    settings: Sequence[Setting]
    place: str = ".env"


def by_name(sections: Iterable[Section]) -> dict[str, Setting]:
    """Return the settings of sections by name."""
    return {setting.name: setting for section in sections for setting in section.settings}


def read_by(table: Mapping[str, Setting], *readers: str) -> dict[str, Setting]:
    """Return the settings of a table that at least one of `readers` reads, by name."""
    return {name: setting for name, setting in table.items() if not {*readers}.isdisjoint(setting.readers)}


def find_misspelled(environ: Mapping[str, str], spellings: Mapping[str, str], known: Container[str]) -> dict[str, str]:
    """Return the probable setting for each misspelled variable: `JUDGE_REPLICAS` for `JUDGE_REPLICA`.

    Args:
        environ: the variables; service links of Kubernetes are ignored.
        spellings: settings by the names with which variables are compared.
        known: names that are not misspelled, nor with the suffix `_FILE`.
    """
    return {
        name: spellings[close[0]]
        for name, value in environ.items()
        if name.removesuffix("_FILE") not in known and not value.startswith(SERVICE_LINK)
        if (close := get_close_matches(name.upper(), spellings, n=1, cutoff=NEAR))
    }
