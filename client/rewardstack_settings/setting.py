"""Declare settings: names, defaults, kinds of values, the programs that read them, and help."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rewardstack_settings.kinds import Files, InvalidText, Kind, Schema

SERVICE_LINK = "tcp://"
"""Start of the value of a variable that Kubernetes sets for a service, such as REWARD_PORT=tcp://10.0.0.1:80."""

MIN_SIMILARITY = 0.9
"""Minimum similarity, from 0 to 1, at which a variable counts as a misspelling of a setting."""

COMMON_MISTAKES = {
    "EMBEDDING_SERVER": "EMBEDDING_SERVER_URL",
    "LLM_JUDGE_SERVER": "LLM_JUDGE_SERVER_URL",
    "LLM_JUDGE_URL": "LLM_JUDGE_SERVER_URL",
    "REWARD_MODEL_SERVER": "REWARD_MODEL_SERVER_URL",
    "REWARD_SERVER": "REWARD_SERVER_URL",
}
"""Frequent wrong names that are less similar to a setting than `MIN_SIMILARITY`, each with the intended setting."""


class InvalidSetting(ValueError):
    """The value of a setting is invalid.

    Args:
        name: name of the setting.
        message: the error message, with the name and the valid values, without secrets.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class Setting:
    """One setting.

    Args:
        name: name of the environment variable.
        default: text to use if the variable is unset or empty.
        kind: kind of the value.
        readers: names of the services and programs that read the setting; see `services.stack.settings_table.READERS`.
        help: description in one line.
        secret: whether the value is secret. A secret value is never shown. Services that can read it from a file get
            it in a file.
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
            InvalidSetting: the text is not valid.
        """
        try:
            return self.kind.read(self.default if text.startswith(SERVICE_LINK) else text or self.default)
        except InvalidText as refused:
            shown = "its value" if self.secret or not refused.may_show else repr(text)
            raise InvalidSetting(self.name, f"{self.name}: {shown} {refused}") from None

    def schema(self) -> Schema:
        """Return the JSON schema of the value, with default and help."""
        value = self.read("")
        default = value if isinstance(value, int | float) else self.default
        return {**self.kind.schema(), "default": default, "description": self.help}

    def files(self, text: str, folder: Path) -> tuple[Path, ...]:
        """Return the files that a value names, absolute and by these names; empty for settings that do not name files.

        Symbolic links are kept, because errors name the files: those of a ConfigMap are links to a hidden folder.

        Args:
            text: the value as text.
            folder: base of relative paths.

        Raises:
            InvalidSetting: a file does not exist.
        """
        if not isinstance(self.kind, Files):
            return ()
        paths = self.read(text)
        for path in paths:
            if not (folder / path).is_file():
                hint = "; separate files by colons" if self.kind.is_list and "," in text else ""
                why = f"{self.name}: there is no file {path}; correct the path, or unset {self.name}{hint}"
                raise InvalidSetting(self.name, why)
        return tuple(Path(os.path.abspath(folder / path)) for path in paths)


@dataclass(frozen=True)
class Section:
    """A group of settings.

    Args:
        title: title of the section in `.env` and in the documentation.
        settings: the settings in order.
        place: where the settings are listed. `.env`: in `.env` and the documentation, for the whole stack.
            `environment`: only in the documentation, for single processes. `compose`: only in the compose files.
    """

    title: str
    settings: Sequence[Setting]
    place: str = ".env"


def index_by_name(sections: Iterable[Section]) -> dict[str, Setting]:
    """Return the settings of all sections by name."""
    return {setting.name: setting for section in sections for setting in section.settings}


def settings_for(table: Mapping[str, Setting], *readers: str) -> dict[str, Setting]:
    """Return, by name, the settings of a table that at least one of `readers` reads."""
    return {name: setting for name, setting in table.items() if not {*readers}.isdisjoint(setting.readers)}


def find_misspelled(environ: Mapping[str, str], spellings: Mapping[str, str], known: Container[str]) -> dict[str, str]:
    """Return the misspelled variables, each with the setting that is probably meant.

    For example, the variable `JUDGE_REPLICA` is returned with the setting `JUDGE_REPLICAS`.

    Args:
        environ: the variables; service links of Kubernetes are ignored.
        spellings: the names with which the variables are compared (names of settings, and likely wrong names), each
            with the setting that is meant.
        known: correct names, without the suffix `_FILE`. Variables with these names, with or without the suffix, are
            not reported.
    """
    return {
        name: meant
        for name, value in environ.items()
        if name.removesuffix("_FILE") not in known and not value.startswith(SERVICE_LINK)
        if (meant := _find_meant(name, spellings))
    }


def _find_meant(name: str, spellings: Mapping[str, str]) -> str:
    """Return the setting that is probably meant by an unknown name; empty if there is none."""
    if (meant := COMMON_MISTAKES.get(name, "")) in spellings:
        return meant
    close = get_close_matches(name.upper(), spellings, n=1, cutoff=MIN_SIMILARITY)
    return spellings[close[0]] if close else ""
