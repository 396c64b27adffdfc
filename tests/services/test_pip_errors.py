"""What pip says last is told apart: versions that do not go together, an index out of reach, the disk, the rights."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.stack import pip_errors

CASES = json.loads((Path(__file__).parents[1] / "cases/pip_errors.json").read_text(encoding="utf-8"))
REMEDIES = {
    "conflict": pip_errors.CONFLICT.format(folder=".venv"),
    "index": pip_errors.UNKNOWN,
    "clock": "by this machine's clock (2020-01-01 00:00) the certificate of the package index is not valid: set the"
    " clock (timedatectl set-ntp true, or date -s), then try again",
    "trust": "this machine does not trust the certificate of the package index, or of a proxy before it: name yours in"
    " PIP_CERT=/path/of/ca.pem, then try again",
    "socks": "pip takes no SOCKS proxy: unset ALL_PROXY, or name an HTTP proxy in HTTPS_PROXY, then try again",
    "settings": (
        "pip's own settings name a file that is not there: mend them (python3 -m pip config debug says where they are)"
    ),
    "room": "make room on the disk of .venv and of the temporary folder (TMPDIR; else /tmp), then try again",
    "rights": "see that .venv and what is in it belong to you and can be written to (ls -ld), then try again",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["case"]))
def test_remedy(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A conflict asks for other versions or another Python; where nothing at all was found, the index is to blame."""
    monkeypatch.setattr(pip_errors, "datetime", SimpleNamespace(now=lambda: datetime(2020, 1, 1)))
    assert pip_errors.remedy("\n".join(case["said"]), ".venv") == REMEDIES[case["remedy"]]
