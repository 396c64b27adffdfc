"""Start a reward server: `python -m rewardstack_rules.run_reward_server --reward-type math_verifier --port 6000`.

This checks the arguments, so that an error names the argument, and then becomes gunicorn with `http.gunicorn_conf`. The
server logs "Running on" once it accepts requests. Arguments override the environment variables of `settings_table.py`.
"""

from __future__ import annotations

import argparse
import errno
import ipaddress
import logging.config
import os
import socket
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from rewardstack.core.secret_files import read_secret_files
from rewardstack.errors import ConfigError, SettingsError
from rewardstack_rules.logs import LOGGING
from rewardstack_rules.process import import_path, module_command
from rewardstack_rules.scoring.reward_type import is_built_in, unknown_reward_type
from rewardstack_rules.settings import SECRETS, Settings

log = logging.getLogger("rewardstack_rules")
SERVER_LIBRARIES = ("Flask", "Werkzeug", "gunicorn", "limits", "prometheus_client", "rapidfuzz", "redis", "rq")
"""Libraries of the extra `server`. This module imports none of them at the top, so that it can report a missing one."""

ARGUMENTS = {
    "REWARD_TYPE": "reward_type",
    "REWARD_HOST": "host",
    "REWARD_PORT": "port",
    "DATASET_PATH": "dataset",
    "REWARD_WORKERS": "workers",
}
"""The attributes of the parsed arguments, by the environment variable that each overrides."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until a signal arrives; exit with a message if a setting is invalid or a library is missing."""
    program = Path(sys.argv[0]).stem
    options = _parser(program).parse_args(arguments)
    _require_libraries(program)
    _set_environment(options)
    logging.config.dictConfig(LOGGING)
    try:
        read_secret_files(SECRETS)
        settings = Settings.from_env()
        _require_address(settings)
        _warn_if_open(settings)
        if not is_built_in(settings) and (error := unknown_reward_type(settings)):
            raise SettingsError(error, "REWARD_TYPE")
    except ConfigError as error:
        sys.exit(f"{program}: {_name_argument(error, options)}")
    run_gunicorn()


def _name_argument(error: ConfigError, options: argparse.Namespace) -> str:
    """Return the error's message. If an argument has set the invalid variable, name the argument in the message."""
    variable = error.field or ""
    option = ARGUMENTS.get(variable, "")
    if not option or getattr(options, option) is None:
        return str(error)
    argument = f"--{option.replace('_', '-')}"
    return str(error).replace(f"{variable}: ", f"{argument}: ", 1).replace(f"unset {variable}", f"omit {argument}")


def _require_libraries(program: str) -> None:
    """Exit with a message if a library of the extra `server` is missing."""
    missing = [name for name in SERVER_LIBRARIES if find_spec(name.lower()) is None]
    if missing:
        remedy = 'install the server\'s extra: pip install "./services/rules[server]"'
        sys.exit(f"{program}: {missing[0]} is missing; {remedy}")


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description="Start a reward server.")
    parser.add_argument(
        "--reward-type",
        help="reward function or route for requests that do not name one (default: REWARD_TYPE, else math_verifier)",
    )
    parser.add_argument("--host", help="address to listen on (default: REWARD_HOST, else 0.0.0.0)")
    parser.add_argument("--port", help="port to listen on (default: REWARD_PORT, else 6000)")
    parser.add_argument("--dataset", help="file with questions and golden responses (default: DATASET_PATH, else none)")
    parser.add_argument("--workers", type=int, help="server processes (default: REWARD_WORKERS, else 1)")
    return parser


def _set_environment(options: argparse.Namespace) -> None:
    """Pass the arguments on as environment variables, which gunicorn's workers and isolated processes read.

    REWARD_HOST defaults to 0.0.0.0, and REWARD_WORKERS to 1.
    """
    values = {variable: getattr(options, option) for variable, option in ARGUMENTS.items()}
    os.environ.setdefault("REWARD_HOST", "0.0.0.0")
    os.environ.setdefault("REWARD_WORKERS", "1")
    os.environ.update({name: str(value) for name, value in values.items() if value is not None})


def _require_address(settings: Settings) -> None:
    """Check that the server can listen on its host and port.

    Raises:
        SettingsError: the server cannot listen there; the message has the reason.
    """
    if settings.socket:
        return
    if error := _bind_error(settings.host, 0):
        why = getattr(error, "strerror", None) or error
        raise SettingsError(
            f"REWARD_HOST: cannot listen on {settings.host!r} ({why}); use 127.0.0.1, or 0.0.0.0 for all addresses of "
            "this machine",
            "REWARD_HOST",
        ) from error
    if error := _bind_error(settings.host, settings.port):
        is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "is taken" if is_taken else f"cannot be used ({getattr(error, 'strerror', None) or error})"
        raise SettingsError(f"REWARD_PORT: port {settings.port} {why}; use another one", "REWARD_PORT") from error


def _bind_error(host: str, port: int) -> OSError | UnicodeError | None:
    """Try to bind a socket to an address, as the server does. Return the error; None if binding succeeds."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ignore old connections of a stopped server
            probe.bind((host, port))
    except (OSError, UnicodeError) as error:
        return error
    return None


def _warn_if_open(settings: Settings) -> None:
    """Warn if other machines can connect to the server, which relies on the gateway against slow clients."""
    if settings.socket or _is_loopback(settings.host):
        return
    log.warning(
        "without the gateway (make up), %s is for trusted networks only: slow clients can block it; else use "
        "--host 127.0.0.1",
        settings.address,
    )
    if not settings.api_keys:
        log.warning(
            "no API keys: any client that can connect to %s can use this server; set REWARD_SERVER_API_KEYS, or use "
            "--host 127.0.0.1",
            settings.address,
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def run_gunicorn() -> NoReturn:
    """Replace this process with gunicorn, so that a signal to this process stops gunicorn."""
    from gunicorn.util import getcwd  # type: ignore[import-untyped]

    command = [*module_command("gunicorn"), "-c", "python:rewardstack_rules.http.gunicorn_conf"]
    path = import_path(getcwd())  # gunicorn inserts a missing working folder at the front; this adds it at the end
    os.execve(sys.executable, command, {**os.environ, "PYTHONPATH": path})


if __name__ == "__main__":
    main()
