"""math_verify's own verdicts, from a process of its own: what it is given can take any time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable

_CHILD = """
import json, logging, sys
import math_verify
logging.disable(logging.CRITICAL)
for line in sys.stdin:
    reference, response = json.loads(line)
    read = [math_verify.parse(text, parsing_timeout=None) for text in (reference, response)]
    print(json.dumps(bool(math_verify.verify(*read, timeout_seconds=None))))
"""
_MARKS = ("$", "boxed", "####", "\\(", "answer")
TIMEOUT = 280
"""Seconds for all of them."""


def verdicts(pairs: Iterable[tuple[str, str]]) -> list[bool]:
    """Whether math_verify takes each response for its reference.

    Args:
        pairs: reference and response; a reference without any mark is put between dollars.
    """
    marked = [
        (reference if any(mark in reference for mark in _MARKS) else f"${reference}$", response)
        for reference, response in pairs
    ]
    lines = "".join(json.dumps(pair) + "\n" for pair in marked)
    done = subprocess.run(
        [sys.executable, "-c", _CHILD], input=lines, capture_output=True, text=True, check=True, timeout=TIMEOUT
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
