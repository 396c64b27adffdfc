"""One setting of the table: its name, default, kind, readers and help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardstack_settings.kinds import Files, Kind, Refused, Schema

SERVICE_LINK = "tcp://"
"""Kubernetes sets a variable such as REWARD_PORT=tcp://10.0.0.1:80 in every pod beside a service of that name."""


class Malformed(ValueError):
    """The value of a setting is refused.

    Args:
        name: of the setting.
        message: names it too, and says what its value must be; shows no secret.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class Setting:
    """One setting.

    Args:
        name: of the variable.
        default: its text where it is unset or empty.
        kind: what its text must look like.
        readers: services and programs that read it, as `READERS` of the table names them.
        help: one line that says what it means.
        secret: whether its value is never shown, and given as a file where a service can read one.
    """

    name: str
    default: str
    kind: Kind
    readers: tuple[str, ...]
    help: str
    secret: bool = False

    def read(self, text: str) -> Any:
        """What a text means as the value of this setting; an empty one, or a service link, means the default.

        Raises:
            Malformed: it is none.
        """
        try:
            return self.kind.read(self.default if text.startswith(SERVICE_LINK) else text or self.default)
        except Refused as refused:
            shown = "its value" if self.secret or not refused.shown else repr(text)
            raise Malformed(self.name, f"{self.name}: {shown} {refused}") from None

    def schema(self) -> Schema:
        """The JSON schema of its value, with default and help."""
        value = self.read("")
        default = value if isinstance(value, int | float) else self.default
        return {**self.kind.schema(), "default": default, "description": self.help}

    def files(self, text: str, folder: Path) -> tuple[Path, ...]:
        """The files that a text names; none for a setting that names no files.

        Args:
            text: the value.
            folder: where relative paths begin.

        Raises:
            Malformed: one is not there.
        """
        paths = self.read(text) if isinstance(self.kind, Files) else ()
        for path in paths:
            if not (folder / path).is_file():
                why = f"{self.name}: there is no file {path}; correct the path, or unset {self.name}"
                raise Malformed(self.name, why)
        return tuple((folder / path).resolve() for path in paths)


@dataclass(frozen=True)
class Section:
    """Settings that belong together.

    Args:
        title: of their part of `.env` and of their table.
        settings: in order.
        place: `.env` for those of the stack, which have a line there; `environment` for those of one process, which
            are documented only; `compose` for what only compose files name, with its default.
    """

    title: str
    settings: Sequence[Setting]
    place: str = ".env"


def by_name(sections: Iterable[Section]) -> dict[str, Setting]:
    """The settings of some sections, by name."""
    return {setting.name: setting for section in sections for setting in section.settings}


def read_by(table: Mapping[str, Setting], *readers: str) -> dict[str, Setting]:
    """The settings of a table that one of these reads, by name."""
    return {name: setting for name, setting in table.items() if not {*readers}.isdisjoint(setting.readers)}
