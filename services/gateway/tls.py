"""Read and check the TLS certificate and key of the gateway."""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from services.stack.errors import StackError
from services.stack.settings import Settings

FILES = {"tls_certificate": "TLS_CERTIFICATE", "tls_key": "TLS_KEY"}
"""For each TLS file, the setting with the path of the user's file."""
TRUST = "SSL_CERT_FILE"
"""Environment variable with the path of a CA file. OpenSSL reads it, and so do all clients of the stack."""
HANDSHAKE_ROUNDS = 4
"""Number of times that each side continues the handshake. Two would suffice, because the client checks the certificate
in its second turn; further turns do nothing."""


@dataclass(frozen=True)
class Tls:
    """TLS files of the gateway.

    Args:
        folder: folder with the files named in `FILES`.
        version: digest of the files' contents.
    """

    folder: Path
    version: str


def contents(settings: Settings) -> dict[str, str]:
    """Return the text of each TLS file by name; empty if TLS is off.

    Raises:
        StackError: a file is missing or unreadable; the message names the setting.
    """
    return {name: _read(settings, setting) for name, setting in FILES.items()} if settings.tls else {}


def check(settings: Settings) -> None:
    """Check that certificate and key exist and match, and that clients on this machine accept them.

    Raises:
        StackError: a check fails; the message names the setting and the remedy.
    """
    configured = [setting for setting in FILES.values() if settings[setting]]
    if len(configured) == 1:
        missing = next(setting for setting in FILES.values() if setting not in configured)
        raise StackError(f"{configured[0]} is set and {missing} is not", "set both for TLS at the gateway, or neither")
    if configured:
        contents(settings)
        trusted_ca_file(settings)


def trusted_ca_file(settings: Settings) -> str:
    """Return the CA file with which clients on this machine accept the gateway's certificate.

    Return an empty string if TLS is off, or if this machine's own CAs suffice to accept the certificate.

    Raises:
        StackError: clients reject the certificate.
    """
    if not settings.tls:
        return ""
    own = os.environ.get(TRUST, "")
    certificate = str(*settings.files("TLS_CERTIFICATE"))
    server, problem = _server_context(settings, certificate), ""
    for file in (own, certificate):
        problem = _handshake_problem(server, _client_context(file), settings.gateway_name)
        if not problem:
            return file
    raise StackError(
        f"TLS_CERTIFICATE: clients of https://{settings.gateway_name} reject the certificate: {problem}",
        f"set TLS_NAME to a name in the certificate that resolves to this machine, or {TRUST} to its CA certificate",
    )


def _read(settings: Settings, setting: str) -> str:
    [path] = settings.files(setting)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StackError(f"{setting}: {path} cannot be read: {error}", "name a PEM file that you can read") from None


def _server_context(settings: Settings, certificate: str) -> ssl.SSLContext:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without `password`, OpenSSL would prompt on the terminal if the key is encrypted.
        server.load_cert_chain(certificate, str(*settings.files("TLS_KEY")), password="")
    except (ssl.SSLError, ValueError) as error:
        raise StackError(
            f"TLS_CERTIFICATE and TLS_KEY: OpenSSL rejects them: {error}",
            "use a matching pair of PEM files; the key must have no password",
        ) from None
    return server


def _client_context(file: str) -> ssl.SSLContext:
    """Return a client context that trusts a CA file; if `file` is empty, it trusts the CAs of this machine."""
    try:
        return ssl.create_default_context(cafile=file or None)
    except OSError as error:
        raise StackError(f"{TRUST}: {file} cannot be read: {error}", f"name a PEM file, or unset {TRUST}") from None


def _handshake_problem(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> str:
    """Try a handshake in memory. Return the reason why the client rejects the certificate; empty if it accepts it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=name.strip("[]")),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    try:
        for end in ends * HANDSHAKE_ROUNDS:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    except ssl.SSLError as error:
        return getattr(error, "verify_message", "") or str(error)
    return ""
