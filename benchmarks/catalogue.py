"""List the benchmarks that `make bench` runs, in order, with the arguments for a quick run of each."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
SMALL = {
    "cache": "--samples 4000 --runs 3",
    "result_cache": "--items 3200 --rounds 3",
    "transcripts": "--rounds 3",
    "rules": "--items 10000 --baseline-items 800",
    "code": "--programs 40 --baseline-programs 8",
    "neighbours": "--requests 300",
    "attacked": "--seconds 5",
    "status_page": "--seconds 1 --windows 2 --share-seconds 5",
    "judge_client": "--samples 4000 --runs 1",
    "judge_vllm": "--groups 3 --runs 2 --replicas 2",
    "benchmark_embedding_remote": "--samples 128 --single 20 --runs 3",
    "tei_python": "--texts 128 --rounds 2",
    "symbolic": "--items 1500 --requests 200 --baseline-items 20",
}
"""Arguments for a quick run (`smoke=1`), by benchmark. The figures of a quick run are not meaningful."""


class Benchmark(NamedTuple):
    """A benchmark script and its description.

    Args:
        name: name of the file without its suffix.
        script: path of the file.
        about: what is measured, in one sentence.
        method: how it is measured, in paragraphs.
        small: arguments for a quick run.
    """

    name: str
    script: Path
    about: str
    method: list[str]
    small: list[str]


def benchmark(name: str, folder: Path = FOLDER) -> Benchmark:
    """Return the benchmark of this name, described by the docstring of its script."""
    script = folder / f"{name}.py"
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or name
    about, *others = re.split(r"\n\s*\n", docstring)
    method = [" ".join(part.split()) for part in others if not part.startswith(" ")]
    return Benchmark(name, script, " ".join(about.split()), method, SMALL.get(name, "").split())
