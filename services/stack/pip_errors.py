"""What pip's last words mean for whoever typed the command: a table of patterns, each with its remedy."""

from __future__ import annotations

import re
from datetime import datetime

UNKNOWN = "see that this machine reaches a Python package index (pip's own settings apply), then try again"

CONFLICT = (
    "the versions that pip names do not go with one another, or not with the Python in {folder}: undo a change of"
    " constraints.txt, or take another Python (rm -r {folder}, then PYTHON=python3.12 make up)"
)

REMEDIES = (
    (
        r"No space left on device|Disk quota exceeded",
        "make room on the disk of {folder} and of the temporary folder (TMPDIR; else /tmp), then try again",
    ),
    (
        r"Permission denied|Operation not permitted|Read-only file system",
        "see that {folder} and what is in it belong to you and can be written to (ls -ld), then try again",
    ),
    (r"requires? a different [Pp]ython", CONFLICT),
    (
        r"certificate is not yet valid|certificate has expired",
        "by this machine's clock ({now:%Y-%m-%d %H:%M}) the certificate of the package index is not valid: set the"
        " clock (timedatectl set-ntp true, or date -s), then try again",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "this machine does not trust the certificate of the package index, or of a proxy before it: name yours in"
        " PIP_CERT=/path/of/ca.pem, then try again",
    ),
    (
        r"Missing dependencies for SOCKS support",
        "pip takes no SOCKS proxy: unset ALL_PROXY, or name an HTTP proxy in HTTPS_PROXY, then try again",
    ),
    (
        r"Could not open (requirements|constraint) file",
        "pip's own settings name a file that is not there: mend them (python3 -m pip config debug says where they are)",
    ),
    # Without an index pip finds no version of anything, and may call that a conflict.
    (r"\(from versions: none\)|Retrying \(Retry\(|Failed to establish a new connection", UNKNOWN),
    (r"ResolutionImpossible|No matching distribution found", CONFLICT),
)
"""What pip says, as a pattern, and the remedy; the first row that is found is taken.

`{folder}` is the environment, `{now}` the time.
"""


def remedy(said: str, folder: object) -> str:
    """What to do about an installation that failed.

    Args:
        said: the last lines of pip, or of `python -m venv`.
        folder: the virtual environment that was being made.
    """
    found = (advice for pattern, advice in REMEDIES if re.search(pattern, said))
    return next(found, UNKNOWN).format(folder=folder, now=datetime.now())
