"""`python -m tests.support.lines [COMMIT]`: count the code lines of each package, of the working tree or of a commit.

A code line is one that is neither blank nor a comment, and not part of a docstring (also of an attribute).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("client", "cli", "verifier", "verifier outside lexicon", "services", "services/rules")


def count(source: str) -> int:
    """Return the number of code lines of a source file."""
    texts = {
        number
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(source.splitlines(), 1)
    return sum(1 for number, line in lines if number not in texts and line.strip()[:1] not in ("", "#"))


def sources(commit: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and text of each Python file that git knows, of the working tree or of a commit."""
    listed = _git("ls-tree", "-r", "--name-only", commit) if commit else _git("ls-files")
    for path in listed.splitlines():
        if path.endswith(".py") and (commit or (ROOT / path).exists()):
            yield path, _git("show", f"{commit}:{path}") if commit else (ROOT / path).read_text()


def packages(commit: str = "") -> dict[str, int]:
    """Return the number of code lines of each package."""
    found: Counter[str] = Counter()
    for path, source in sources(commit):
        number = count(source)
        for package in PACKAGES:
            folder, _, exception = package.partition(" outside ")
            if path.startswith(f"{folder}/") and not (exception and f"/{exception}/" in path):
                found[package] += number
    return dict(found)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    for package, lines in packages(*sys.argv[1:2]).items():
        print(f"{lines:7,} {package}")
