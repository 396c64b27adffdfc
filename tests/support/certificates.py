"""Create TLS certificates for tests with OpenSSL."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    """Paths of a certificate and its private key, both in PEM format."""

    certificate: Path
    key: Path

    @property
    def settings(self) -> dict[str, str]:
        """The settings with which the gateway uses this certificate."""
        return {"TLS_CERTIFICATE": str(self.certificate), "TLS_KEY": str(self.key)}


def certificate(folder: Path, name: str = "localhost", authority: Certificate | None = None) -> Certificate:
    """Create a certificate that is valid for a day.

    Args:
        folder: where it is written; an existing certificate with this name is overwritten.
        name: host name that it is for.
        authority: certificate that signs it; None for a self-signed one.
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
