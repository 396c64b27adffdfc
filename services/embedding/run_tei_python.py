#!/usr/bin/env python3
"""Serve text embeddings over TEI's protocol: `run_tei_python.py --model-id MODEL --port 8080`; see `--help`."""

from __future__ import annotations

import logging
import os
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "client")]

from services.embedding.tei_python.settings import parse  # noqa: E402 - the root is on the path only now
from services.models.environment import Models  # noqa: E402
from services.stack.errors import StackError  # noqa: E402
from services.stack.settings import load  # noqa: E402


def main() -> None:
    """Serve until SIGTERM or SIGINT; exit with a message if the server cannot start."""
    settings = parse(sys.argv[1:])
    if "OMP_WAIT_POLICY" not in os.environ:  # let PyTorch's idle threads spin for microseconds only
        os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        from services.embedding.tei_python.model import Model
        from services.embedding.tei_python.server import serve
    except ImportError as error:
        _exec_models_python(error)
    try:
        family = socket.AF_INET6 if ":" in settings.hostname else socket.AF_INET
        socket.create_server((settings.hostname, settings.port), family=family).close()  # fail before loading the model
        serve(Model(settings), settings)
    except (OSError, StackError) as error:
        sys.exit(f"run_tei_python: {error}")


def _exec_models_python(error: ImportError) -> None:
    """Run this script again with the interpreter of the models environment (MODELS_DIR).

    Exit with the error if there is no such interpreter, or if this script already runs with it.
    """
    models = Models(Path(load(ROOT)["MODELS_DIR"]))
    if Path(models.python).exists() and not Path(sys.prefix).samefile(models.venv):
        os.execv(models.python, [models.python, __file__, *sys.argv[1:]])
    sys.exit(f"run_tei_python: {error}; pip install sentence-transformers torch aiohttp pydantic prometheus-client")


if __name__ == "__main__":
    main()
