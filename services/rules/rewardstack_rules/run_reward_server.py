"""Starts a reward server: `python -m rewardstack_rules.run_reward_server --reward-type math_verifier --port 6000`.

One process without `--workers`, for trying; gunicorn with it. The line with "Running on" comes when requests are
answered. Arguments stand above the environment's variables, which `settings.py` lists.
"""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import logging.config
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from rewardstack.core.descriptors import raise_open_files
from rewardstack.core.secret_files import read_secret_files
from rewardstack.errors import ConfigError
from rewardstack_rules.http.connection import PacedSocket, Places, SlowClientError
from rewardstack_rules.logs import LOGGING
from rewardstack_rules.process import return_memory
from rewardstack_rules.scoring.isolated import prepare_isolated
from rewardstack_rules.settings import SECRETS, Settings

log = logging.getLogger("rewardstack_rules")


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the arguments and serves until it is told to stop; exits with a message where a setting is wrong."""
    options = _parser().parse_args(arguments)
    raise_open_files()
    _to_environment(options)
    logging.config.dictConfig(LOGGING)
    try:
        read_secret_files(SECRETS)
        settings = Settings.from_env()
        _warn_if_open(settings)
        if options.workers:
            run_gunicorn()
        serve(settings)
    except ConfigError as error:
        sys.exit(f"run_reward_server: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run_reward_server", description="Starts a rule-based reward server.")
    parser.add_argument("--reward-type", help="what /get_reward scores by (REWARD_TYPE, else math_verifier)")
    parser.add_argument("--host", help="address to listen on (REWARD_HOST, else 0.0.0.0)")
    parser.add_argument("--port", help="port to listen on (REWARD_PORT, else 6000)")
    parser.add_argument("--dataset", help="file with rows of question and answer (DATASET_PATH, else none)")
    parser.add_argument("--workers", type=int, help="run this many processes under gunicorn (one without it)")
    return parser


def _to_environment(options: argparse.Namespace) -> None:
    """Puts the arguments where workers and isolated processes find them."""
    given = {
        "REWARD_TYPE": options.reward_type,
        "REWARD_HOST": options.host,
        "REWARD_PORT": options.port,
        "DATASET_PATH": options.dataset,
        "REWARD_WORKERS": options.workers,
    }
    os.environ.setdefault("REWARD_HOST", "0.0.0.0")
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})


def _warn_if_open(settings: Settings) -> None:
    if not settings.api_keys and not settings.socket and not _is_loopback(settings.host):
        log.warning(
            "Anyone who reaches %s can use this server; set REWARD_SERVER_API_KEYS, or --host 127.0.0.1",
            settings.address,
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def run_gunicorn() -> NoReturn:
    """Becomes gunicorn, so that the process started is the one to be stopped."""
    command = [sys.executable, "-m", "gunicorn", "-c", "python:rewardstack_rules.http.gunicorn_conf"]
    os.execv(sys.executable, command)


class _Handler(WSGIRequestHandler):
    """Leaves it to `request_log` to log requests; a client that is too slow is no fault to be told of."""

    def handle(self) -> None:
        """Answers what comes."""
        with contextlib.suppress(SlowClientError):
            super().handle()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Writes nothing."""


class _Server(ThreadedWSGIServer):
    """Has as many threads as requests, and so as many places for slow clients."""

    places = Places(sys.maxsize)

    def get_request(self) -> tuple[PacedSocket, Any]:
        """The next connection, and from where."""
        client, address = super().get_request()
        return PacedSocket(client, self.places), address


def serve(settings: Settings) -> None:
    """Serves from this process, a thread a request, until SIGTERM or SIGINT.

    Raises:
        ConfigError: a setting is wrong.
    """
    from rewardstack_rules.http.app import create_app
    from rewardstack_rules.http.status import leave

    return_memory()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    prepare_isolated(settings)
    address = f"unix://{settings.socket}" if settings.socket else settings.host
    app = create_app(settings)
    server = _Server(address, settings.port, app, _Handler)
    server.log_startup()
    try:
        server.serve_forever()
    finally:
        server.server_close()
        leave(app)


if __name__ == "__main__":
    main()
