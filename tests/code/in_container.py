"""Run every attack on the reward server of a container, from inside of it, and print those that work as JSON.

`python -m tests.code.in_container URL PID`, as the user of the server, with the process id of it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from tests.code.cases import CASES, attack, in_batches, load, sample
from tests.code.unconfined import Bait


def main() -> None:
    """Print the names of attacks that work, of ordinary programs that do not, and what is touched."""
    url, server = sys.argv[1], int(sys.argv[2])
    bait = Bait(Path(tempfile.mkdtemp()))
    found: list[str] = []
    for batch in in_batches(load("attacks", "more_attacks"), 16):
        scores = _score(url, [attack(row["source"], bait, server) for row in batch])
        for row, score in zip(batch, scores, strict=True):
            if score["status"] != "ok" or score["details"]["parts"]["passed"]:
                found.append(f"{row['name']}: {score['status']} {score['reason']}")
    tests = {"inputs": ["3\n1 2 3\n"], "outputs": ["6"]}
    rows = [
        row for row in load("ordinary", "more_ordinary") if "numpy" not in row["source"] and "\xe9" not in row["source"]
    ]
    for row, score in zip(
        rows, _score(url, [sample(row["source"], tests, compare="tokens") for row in rows]), strict=True
    ):
        if score["value"] != 1.0:
            found.append(f"{row['name']}: {score['reason']}")
    print(json.dumps(found + _compiled(url, bait, server) + bait.touched()))


def _compiled(url: str, bait: Bait, server: int) -> list[str]:
    """Return what is wrong with a program in C++ that attacks, and with a source that does, if there is a compiler."""
    if shutil.which("g++") is None:
        return []
    options = {"language": "cpp", "compare": "tokens"}
    sources = (bait.fill((CASES / "attacks.cpp").read_text(), server), '#include "/etc/passwd"')
    items = [
        {**sample("", {"inputs": [""], "outputs": ["end"]}, **options), "solution_str": f"```cpp\n{source}\n```"}
        for source in sources
    ]
    program, source = _score(url, items)
    wrong = [] if program["value"] == 1.0 else [f"attacks.cpp: {program['reason']}"]
    return wrong if "Permission denied" in source["reason"] else [*wrong, f"include: {source['reason']}"]


def _score(url: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    body = json.dumps({"items": items}).encode()
    request = urllib.request.Request(f"{url}/v1/score", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as reply:
        scores: list[dict[str, Any]] = json.load(reply)["scores"]
    return scores


if __name__ == "__main__":
    main()
