"""TLS at the gateway: the certificate and the key that settings name, and whether clients here can trust them."""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from services.stack.errors import StackError
from services.stack.settings import Settings

FILES = {"tls_certificate": "TLS_CERTIFICATE", "tls_key": "TLS_KEY"}
"""The setting that each file of the gateway is a copy of."""
TRUST = "SSL_CERT_FILE"
"""The variable by which OpenSSL, and so every client, is told whom to trust."""
FLIGHTS = 4
"""Times that each end of a handshake has its turn; two are enough."""


@dataclass(frozen=True)
class Tls:
    """What the gateway is given.

    Args:
        folder: that holds the files, by the names of `FILES`.
        version: of their contents.
    """

    folder: Path
    version: str


def contents(settings: Settings) -> dict[str, str]:
    """The text of each file by name; none without TLS.

    Raises:
        StackError: one is not there or cannot be read; names the setting.
    """
    return {name: _read(settings, setting) for name, setting in FILES.items()} if settings.tls else {}


def require(settings: Settings) -> None:
    """Check that certificate and key are there, belong together, and serve clients on this machine.

    Raises:
        StackError: they do not; names the setting, and the remedy.
    """
    given = [setting for setting in FILES.values() if settings[setting]]
    if len(given) == 1:
        missing = next(setting for setting in FILES.values() if setting not in given)
        raise StackError(f"{given[0]} is set and {missing} is not", "set both for TLS at the gateway, or none")
    if given:
        contents(settings)
        trusted(settings)


def trusted(settings: Settings) -> str:
    """The file of certificates that clients on this machine need; empty where they need none, or without TLS.

    Raises:
        StackError: no client would take the certificate.
    """
    if not settings.tls:
        return ""
    own = os.environ.get(TRUST, "")
    certificate = str(*settings.files("TLS_CERTIFICATE"))
    server, problem = _server(settings, certificate), ""
    for file in (own, certificate):
        problem = _refusal(server, _trusting(file), settings.gateway_name)
        if not problem:
            return file
    raise StackError(
        f"TLS_CERTIFICATE: clients of https://{settings.gateway_name} refuse it: {problem}",
        f"set TLS_NAME to a name in it that leads to this machine, or {TRUST} to the certificate of its authority",
    )


def _read(settings: Settings, setting: str) -> str:
    [path] = settings.files(setting)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StackError(f"{setting}: {path} cannot be read: {error}", "name a PEM file that you may read") from None


def _server(settings: Settings, certificate: str) -> ssl.SSLContext:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password OpenSSL would ask the terminal for the one of an encrypted key.
        server.load_cert_chain(certificate, str(*settings.files("TLS_KEY")), password="")
    except (ssl.SSLError, ValueError) as error:
        raise StackError(
            f"TLS_CERTIFICATE and TLS_KEY: OpenSSL does not take them: {error}",
            "name PEM files that belong together, the key without a password",
        ) from None
    return server


def _trusting(file: str) -> ssl.SSLContext:
    """What a client trusts; without a file whom the machine does."""
    try:
        return ssl.create_default_context(cafile=file or None)
    except OSError as error:
        raise StackError(f"{TRUST}: {file} cannot be read: {error}", "name a PEM file, or unset it") from None


def _refusal(server: ssl.SSLContext, trusting: ssl.SSLContext, name: str) -> str:
    """Why a client does not take the server's certificate, by a handshake in memory; empty where it does."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        trusting.wrap_bio(to_client, to_server, server_hostname=name.strip("[]")),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    try:
        for end in ends * FLIGHTS:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    except ssl.SSLError as error:
        return getattr(error, "verify_message", "") or str(error)
    return ""
