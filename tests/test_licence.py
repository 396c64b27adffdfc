"""What stands in the packages that are built."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("package", ["client", "cli", "verifier", "services/rules"])
def test_packages_hold_the_licence(package: str) -> None:
    """The build takes the licence's text from the package's own folder: it is the project's."""
    assert (ROOT / package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
