#!/usr/bin/env python3
"""Serves text embeddings as Text Embeddings Inference does: `run_tei_python.py --model-id MODEL --port 8080`.

`--help` lists the flags. It needs Python 3.10 or later with sentence-transformers, PyTorch, aiohttp and pydantic.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "client")]

from services.embedding.tei_python import settings  # noqa: E402 - the root is on the path only now
from services.models.environment import Models  # noqa: E402
from services.stack.errors import StackError  # noqa: E402
from services.stack.settings import load  # noqa: E402

NEEDED = ("sentence-transformers", "torch", "aiohttp", "pydantic")
SPINS = "5000"
"""How often PyTorch's threads look for work before they sleep. By default they go on for milliseconds, which takes the
processor from whatever they wait for; without any spinning each pass waits to be woken a hundred times."""


def main() -> None:
    """Serves until it is told to stop; exits with a message where it cannot start."""
    chosen = settings.parse()
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        _require()
    except StackError as error:
        sys.exit(f"run_tei_python: {error}")
    from services.embedding.tei_python.errors import StartError
    from services.embedding.tei_python.serve import run

    try:
        run(chosen)
    except StartError as error:
        sys.exit(f"run_tei_python: {error}")


def _require() -> None:
    """Goes on in the interpreter that `make up` has made for models where this one lacks what is needed."""
    missing = [package for package in NEEDED if importlib.util.find_spec(package.replace("-", "_")) is None]
    if not missing:
        return
    models = Models(Path(load(ROOT)["MODELS_DIR"]))
    if Path(models.python).exists() and Path(sys.prefix) != models.venv:
        os.execv(models.python, [models.python, __file__, *sys.argv[1:]])
    sys.exit(f"run_tei_python: missing: {', '.join(missing)}; {sys.executable} -m pip install {' '.join(missing)}")


if __name__ == "__main__":
    main()
