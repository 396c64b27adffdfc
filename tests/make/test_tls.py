"""Certificates are checked before anything starts, with the eyes of a client on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.gateway import tls
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from services.stack.settings import Settings, load
from services.up import preflight
from tests.support.certificates import Certificate, certificate

pytestmark = pytest.mark.usefixtures("needs_openssl")


@pytest.fixture(autouse=True)
def nobody_is_trusted_beside_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever shell the tests run in."""
    monkeypatch.delenv(tls.TRUST, raising=False)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate for localhost that signs itself."""
    return certificate(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """One for a name that is not this machine's."""
    return certificate(tmp_path_factory.mktemp("other"), "rewards.example")


def settings(**values: object) -> Settings:
    """The shipped settings, and what a test changes."""
    return load(ROOT, {name: str(value) for name, value in values.items()})


def explain_os_error(**values: object) -> str:
    """What is said of settings that are refused."""
    with pytest.raises(StackError) as caught:
        preflight.require_consistent(settings(**values))
    return f"{caught.value}"


def test_own_certificate(own: Certificate) -> None:
    """One that signs itself is what clients must trust, and addresses begin with https; without one nothing is."""
    given = settings(**own.settings)
    preflight.require_consistent(given)
    assert (tls.trusted_ca_file(given), given.url()) == (str(own.certificate), "https://localhost:6000")
    assert (tls.trusted_ca_file(settings()), settings().url()) == ("", "http://localhost:6000")


def test_certificate_of_an_authority(own: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that another signed is taken where that one is trusted, which is then what clients must trust."""
    signed = certificate(tmp_path, authority=own)
    assert "unable to get" in explain_os_error(**signed.settings)
    monkeypatch.setenv(tls.TRUST, str(own.certificate))
    assert tls.trusted_ca_file(settings(**signed.settings)) == str(own.certificate)


def test_name(other: Certificate) -> None:
    """A certificate for another name takes TLS_NAME, which addresses then have."""
    said = explain_os_error(**other.settings)
    assert "TLS_CERTIFICATE" in said and "'localhost'" in said and "set TLS_NAME to a name in the certificate" in said
    given = settings(**other.settings, TLS_NAME="rewards.example")
    preflight.require_consistent(given)
    assert given.url("JUDGE_PORT") == "https://rewards.example:8000"


@pytest.mark.parametrize("alone", ["TLS_CERTIFICATE", "TLS_KEY"])
def test_both_or_none(own: Certificate, alone: str) -> None:
    """One without the other is refused, and the missing one is named."""
    missing = "TLS_KEY" if alone == "TLS_CERTIFICATE" else "TLS_CERTIFICATE"
    assert f"{alone} is set and {missing} is not" in explain_os_error(**{alone: own.settings[alone]})


def test_files(own: Certificate, other: Certificate, tmp_path: Path) -> None:
    """A file that is not there, a key of another certificate, and what is no PEM are refused."""
    assert "TLS_KEY: there is no file" in explain_os_error(**{**own.settings, "TLS_KEY": tmp_path / "gone"})
    assert "matching pair" in explain_os_error(**{**own.settings, "TLS_KEY": other.key})
    assert "TLS_KEY" in explain_os_error(**{**own.settings, "TLS_KEY": own.certificate})
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\xff")
    assert "TLS_KEY" in explain_os_error(**{**own.settings, "TLS_KEY": garbage})
