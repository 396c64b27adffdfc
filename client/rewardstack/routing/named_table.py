"""Parses the fields that the tables `[judges.NAME]` and `[reward_models.NAME]` of a routes file have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardstack.core.misspellings import not_known
from rewardstack.errors import RouteError, SettingsError
from rewardstack.settings import parse_urls

_NAME = re.compile(r"(?!v\d)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""Matches names that are valid at the end of a URL path. It does not match names such as `v1`, because they would look
like an API version in the path."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True)
class NamedTable:
    """The table of one judge or reward model.

    Args:
        kind: `judges` or `reward_models`.
        name: name of the judge or reward model, and of its route.
        fields: the table's fields.
    """

    kind: str
    name: str
    fields: Mapping[str, Any]

    @classmethod
    def read(cls, kind: str, name: object, table: object, allowed: tuple[str, ...]) -> NamedTable:
        """Return the table, after checking its name and the names of its fields.

        Args:
            kind: `judges` or `reward_models`.
            name: name of the judge or reward model.
            table: the table.
            allowed: the names of the fields that the table may have.

        Raises:
            RouteError: the name of the table or of a field is invalid, or `table` is not a mapping.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            remedy = (
                "use at most 64 letters, digits, `_`, `-` and `.`, begin with a letter or a digit, "
                "and do not begin like an API version (`v1`)"
            )
            raise RouteError(f"{kind}: invalid name {str(name)[:64]!r}; {remedy}", kind)
        if not isinstance(table, Mapping):
            raise table_error(kind, name, "", f"expected a table, got {type(table).__name__}")
        if unknown := [field for field in table if field not in allowed]:
            raise table_error(kind, name, str(unknown[0]), not_known(unknown[0], allowed))
        return cls(kind, name, table)

    def error(self, field: str, message: str) -> RouteError:
        """Return an error about a field; see `table_error`."""
        return table_error(self.kind, self.name, field, message)

    def base_url(self) -> tuple[str, ...]:
        """Return the base URLs of equivalent servers; empty if the field is missing."""
        value = self.fields.get("base_url", ())
        urls = [value] if isinstance(value, str) else value
        if not isinstance(urls, (list, tuple)) or not all(isinstance(url, str) and url.strip() for url in urls):
            raise self.error("base_url", "must be a base URL, or a list of equivalent ones")
        try:
            return parse_urls(",".join(urls), f"{self.kind}.{self.name}.base_url")
        except SettingsError as error:
            raise RouteError(str(error), error.field) from None

    def api_key_env(self, advice: str) -> str:
        """Return the name of the environment variable that holds the key; empty if the field is missing.

        Args:
            advice: end of the error message if the table has `api_key_env`, but no `base_url`. This text names the
                variable that holds the key for tables without `base_url`.
        """
        name = self.fields.get("api_key_env", "")
        # The error does not show the value, which may be the key itself.
        if "api_key_env" in self.fields and (not isinstance(name, str) or not _VARIABLE.fullmatch(name)):
            raise self.error("api_key_env", "must be the name of the environment variable that holds the key")
        if name and not self.fields.get("base_url"):
            raise self.error("api_key_env", f"needs base_url; {advice}")
        return str(name)

    def text(self, field: str) -> str:
        """Return a string, which must not be blank; if the field is missing, return an empty string."""
        value = self.fields.get(field, "")
        if not isinstance(value, str) or (field in self.fields and not value.strip()):
            raise self.error(field, f"must be a non-empty string, got {str(value)[:50]!r}")
        return value

    def flag(self, field: str) -> bool:
        """Return a boolean; False if the field is missing."""
        value = self.fields.get(field, False)
        if not isinstance(value, bool):
            raise self.error(field, f"must be true or false, got {str(value)[:50]!r}")
        return value

    def integer(self, field: str, maximum: int, default: int = 0) -> int:
        """Return an integer from 1 to `maximum`; `default` if the field is missing."""
        if field not in self.fields:
            return default
        value = self.fields[field]
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= maximum:
            raise self.error(field, f"must be a whole number from 1 to {maximum}")
        return value

    def choice(self, field: str, choices: tuple[str, ...], default: str) -> Any:
        """Return one of the choices; `default` if the field is missing."""
        value = self.fields.get(field, default)
        if value not in choices:
            raise self.error(field, f"must be one of {', '.join(choices)}, got {value!r}")
        return value


def table_error(kind: str, name: str, field: str, message: str) -> RouteError:
    """Return an error about the table of a judge or reward model.

    Args:
        kind: `judges` or `reward_models`.
        name: name of the judge or reward model.
        field: field such as `options.temperature`; empty for the table itself.
        message: what is wrong, and the remedy.
    """
    where = f"{kind}.{name}.{field}" if field else f"{kind}.{name}"
    return RouteError(f"{where}: {message}", where)
