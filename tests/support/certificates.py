"""Certificates for tests, made by OpenSSL."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    """A certificate and its key, PEM files."""

    certificate: Path
    key: Path

    @property
    def settings(self) -> dict[str, str]:
        """Those that have the gateway show it."""
        return {"TLS_CERTIFICATE": str(self.certificate), "TLS_KEY": str(self.key)}


def certificate(folder: Path, name: str = "localhost", authority: Certificate | None = None) -> Certificate:
    """A certificate for a name, valid for a day.

    Args:
        folder: that it is written to; a certificate of this name in it is overwritten.
        name: that it is for.
        authority: that signs it; None for itself.
    """
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    signed = ["-CA", str(authority.certificate), "-CAkey", str(authority.key)] if authority else []
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}"),
            *("-addext", f"subjectAltName=DNS:{name}", *signed),
            *("-keyout", str(made.key), "-out", str(made.certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return made
