"""Read the settings of the stack. Environment variables override `.env.local`, which overrides `.env`.

Names, defaults and bounds come from the table of settings (`settings_table`), from which `.env` is generated. Both
`.env` and `.env.local` are in a subset of Docker Compose's syntax.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import socket
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rewardstack_settings.kinds import Files
from rewardstack_settings.setting import SERVICE_LINK, InvalidSetting, find_misspelled
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.os_errors import explain_os_error
from services.stack.rundir import ROOT
from services.stack.settings_table import TABLE, settings_in

LOCAL = ".env.local"
"""File with the user's lasting settings. Git ignores the file, and upgrades do not change it."""
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")
QUOTED = re.compile(r"""(["'])(.*?)\1\s*(?:#.*)?""")
IN_DOTENV = settings_in(".env")
"""Settings with a line in `.env`."""
SETTINGS = settings_in(".env", "compose")
"""Settings of the stack, in `.env` or with defaults in the compose files."""
SECRETS = tuple(name for name, setting in SETTINGS.items() if setting.secret)
"""Settings whose values are never shown."""
RULES_SECRETS = tuple(name for name in SECRETS if "rules" in SETTINGS[name].readers)
"""Secrets that the reward server reads."""
USERS_FILES = tuple(
    name for name, setting in SETTINGS.items() if isinstance(setting.kind, Files) and "rules" in setting.readers
)
"""Settings that name the user's files, which the reward server reads."""

RENAMED = {
    "PORT": "REWARD_PORT",
    "REWARD_SERVER_PORT": "REWARD_PORT",
    "GATEWAY_PORT": "REWARD_PORT",
    "REWARD_BIND_ADDRESS": "BIND_ADDRESS",
    "REDIS_PORT": "CACHE_PORT",
    "REDIS_PASSWORD": "CACHE_PASSWORD",
    "REDIS_MAXMEMORY": "CACHE_MAX_MEMORY",
    "REWARD_API_KEYS": "REWARD_SERVER_API_KEYS",
    "REWARD_MAX_BODY_BYTES": "MAX_BODY_BYTES",
    "RULES_WORKERS": "REWARD_WORKERS",
    "MODEL_ID": "JUDGE_MODEL or EMBEDDING_MODEL",
    "JUDGE_MODEL_ID": "JUDGE_MODEL",
    "EMBEDDING_MODEL_ID": "EMBEDDING_MODEL",
    "JUDGE_SERVER_URL": "LLM_JUDGE_SERVER_URL",
    "JUDGE_API_KEY": "LLM_JUDGE_SERVER_API_KEY",
}
"""Current names of settings, by former or commonly used name."""

PREFIXES = ("REWARD_", "GATEWAY_", "JUDGE_", "LLM_JUDGE_", "EMBEDDING_")
"""Prefixes of this project's environment variables. An environment variable with a former name is an error only if the
name has one of these prefixes, because other software may set other names, such as `PORT`."""
SWITCHES = ("JUDGE", "EMBEDDING")
"""Settings with the values `on`, `off` and `auto` whose names begin with none of `PREFIXES`."""
SWITCH_SIMILARITY = 0.8
"""Minimum similarity, from 0 to 1, at which a variable, such as `JUGDE`, counts as a misspelled switch."""
EXTRA_VARIABLES = ("COMPOSE_PROJECT_NAME", "HF_TOKEN")
"""Variables that `.env.local` may set although they are not in the table."""


class Settings(dict[str, str]):
    """Validated values of all settings by name."""

    def number(self, name: str) -> int:
        """Return an integer setting."""
        return int(self[name])

    def files(self, name: str) -> tuple[Path, ...]:
        """Return the files that a setting names. Relative paths start at the root of the checkout.

        Raises:
            StackError: a file is missing; the message names the setting.
        """
        try:
            return SETTINGS[name].files(self[name], ROOT)
        except InvalidSetting as error:
            raise StackError(str(error)) from None

    def url(self, port: str = "REWARD_PORT") -> str:
        """Return the URL of a service at the gateway, for clients on this machine.

        Args:
            port: name of the setting with the port.
        """
        return f"{'https' if self.tls else 'http'}://{self.gateway_name}:{self[port]}"

    @property
    def tls(self) -> bool:
        """Whether the gateway uses TLS."""
        return bool(self["TLS_CERTIFICATE"])

    @property
    def gateway_name(self) -> str:
        """Host in the gateway's URL for clients on this machine. An IPv6 address is in brackets."""
        return self["TLS_NAME"] or self.host

    def listen(self, port: str) -> str:
        """Return the address and port that the gateway listens on.

        Args:
            port: name of the setting with the port.
        """
        return f"{self.gateway_host}:{self[port]}"

    @property
    def host(self) -> str:
        """Host at which this machine reaches BIND_ADDRESS. An IPv6 address is in brackets.

        With Apptainer and without TLS, the host is an address and not `localhost`: a node may have other users, who
        could listen on another address of `localhost` and receive requests.
        """
        return (
            self.local_address
            if self["STACK"] == "apptainer" and not self.tls
            else prefer_localhost(self.local_address)
        )

    @property
    def local_address(self) -> str:
        """Address at which this machine reaches BIND_ADDRESS. An IPv6 address is in brackets."""
        loopback = "[::1]" if ":" in self["BIND_ADDRESS"] else "127.0.0.1"
        return loopback if self.listens_everywhere else self.gateway_host

    @property
    def gateway_host(self) -> str:
        """Address that the gateway listens on. An IPv6 address is in brackets."""
        address = self["BIND_ADDRESS"]
        return f"[{address}]" if ":" in address else address

    @property
    def listens_everywhere(self) -> bool:
        """Whether the gateway listens on every address of the machine."""
        return ipaddress.ip_address(self["BIND_ADDRESS"]).is_unspecified

    @property
    def cache_url(self) -> str:
        """URL of the stack's result cache, with its password."""
        password = f":{self['CACHE_PASSWORD']}@" if self["CACHE_PASSWORD"] else ""
        return f"redis://{password}{self.host}:{self['CACHE_PORT']}/0"


def prefer_localhost(address: str) -> str:
    """Return `localhost` if it resolves to this address, else the address unchanged.

    Args:
        address: an IP address; an IPv6 address is in brackets.
    """
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo("localhost", None)}
    except OSError:
        found = set()
    return "localhost" if address.strip("[]") in found else address


def load(root: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of the checkout at `root`. An empty value means the default.

    Raises:
        StackError: a setting is missing, unknown, renamed or malformed; the message names it.
    """
    shipped, local = read_dotenv(root / ".env"), read_local(root)
    _require_known(shipped, ".env")
    environ = {name: value for name, value in environ.items() if not value.startswith(SERVICE_LINK)}
    for old, new in RENAMED.items():
        if old.startswith(PREFIXES) and old in environ:
            raise StackError(f"environment: unknown setting {old}; it is called {new} here", f"set {new} instead")
    for name, setting in IN_DOTENV.items():
        if name not in shipped:
            raise StackError(f".env: {name} is missing", f"put its line back: {name}={setting.default}")
    settings, sources = Settings(), {"environment": environ, LOCAL: local, ".env": shipped}
    for name, setting in SETTINGS.items():
        source = next((source for source, values in sources.items() if name in values), ".env")
        settings[name] = sources[source].get(name, "") or setting.default
        try:
            setting.read(settings[name])
        except InvalidSetting as error:
            raise StackError(f"{source}: {error}") from None
    # The stack itself reaches the gateway by TLS_NAME, so the servers must accept this host name.
    settings["ALLOWED_HOSTS"] = ",".join(filter(None, [settings["ALLOWED_HOSTS"], settings["TLS_NAME"]]))
    return settings


def read_local(root: Path) -> dict[str, str]:
    """Return the values that `.env.local` sets, by name.

    Raises:
        StackError: a name is unknown, or other users can read a secret in the file.
    """
    values = read_dotenv(root / LOCAL) if (root / LOCAL).exists() else {}
    _require_known({name: value for name, value in values.items() if name not in EXTRA_VARIABLES}, LOCAL)
    secrets = [name for name, value in values.items() if value and (name in SECRETS or name == "HF_TOKEN")]
    if secrets and (root / LOCAL).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StackError(f"{LOCAL}: other users may read {secrets[0]}", f"chmod 600 {LOCAL}")
    return values


def export_extra_variables(root: Path) -> None:
    """Export the variables of `.env.local` that are not settings, except those that are already in `os.environ`."""
    for name in EXTRA_VARIABLES:
        if value := read_local(root).get(name):
            os.environ.setdefault(name, value)


def _require_known(values: Iterable[str], source: str) -> None:
    for name in values:
        if name not in SETTINGS:
            close = difflib.get_close_matches(name, SETTINGS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            hint = f"; it is called {RENAMED[name]} here" if name in RENAMED else hint
            raise StackError(f"{source}: unknown setting {name}{hint}", "see docs/settings.md")


def misspelled_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the probable setting for each misspelled environment variable, by the variable's name.

    Two kinds of variables are checked: those that begin with one of `PREFIXES`, and those that have the value `on`,
    `off` or `auto` and a name similar to one of `SWITCHES`.
    """
    own = {name: value for name, value in environ.items() if name.startswith(PREFIXES)}
    switches = {
        name: close[0]
        for name, value in environ.items()
        if value in ("on", "off", "auto") and name not in TABLE
        if (close := difflib.get_close_matches(name.upper(), SWITCHES, n=1, cutoff=SWITCH_SIMILARITY))
    }
    return {**switches, **find_misspelled(own, {name: name for name in SETTINGS}, TABLE)}


def run_dir(root: Path, environ: Mapping[str, str] = os.environ) -> str:
    """Return RUN_DIR even if other settings are invalid, so that a running stack can be stopped."""
    if path := environ.get("RUN_DIR"):
        return path
    default = SETTINGS["RUN_DIR"].default
    try:
        local = read_dotenv(root / LOCAL) if (root / LOCAL).exists() else {}
        return local.get("RUN_DIR") or read_dotenv(root / ".env").get("RUN_DIR") or default
    except (StackError, OSError) as error:
        problem = explain_os_error(error).problem
        say(
            f"warning: {problem}; looking for a running stack in {default}; set RUN_DIR if it is in another folder",
            sys.stderr,
        )
        return default


def read_dotenv(path: Path) -> dict[str, str]:
    """Return the values in a file with lines `NAME=value`, by name.

    A value may be in single or double quotes. Outside quotes, a `#` starts a comment at the beginning of the value,
    after white space, or after the closing quote. Variables are not interpolated.

    Raises:
        StackError: the file is missing, or a line is invalid or duplicated; the message names the line.
    """
    if not path.is_file():
        raise StackError(
            f"{path.name} is missing", f"restore it from the archive, or with `git checkout -- {path.name}`"
        )
    values: dict[str, str] = {}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        where = f"{path.name}, line {number}"
        if not (match := ASSIGNMENT.fullmatch(text)):
            raise StackError(f"{where}: {text!r} is not an assignment", "write NAME=value")
        name, raw = match.groups()
        if name in values:
            raise StackError(f"{where}: {name} is set twice", "remove one of the two lines")
        values[name] = _value(raw.strip(), f"{where}: {name}")
    return values


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise StackError(f"{path.name}, line {line}: this is not UTF-8", f"save {path.name} as UTF-8") from None


def _value(raw: str, where: str) -> str:
    if raw[:1] in ("'", '"'):
        if not (match := QUOTED.fullmatch(raw)):
            raise StackError(
                f"{where} does not end with its opening quote", "close the quote; only a comment may follow"
            )
        return match.group(2)
    return "" if raw.startswith("#") else re.split(r"\s#", raw, maxsplit=1)[0].strip()
