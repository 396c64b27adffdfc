"""docs/data.md, walked through as it is printed."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from rewardstack_cli.prepare import add_parser
from rewardstack_cli.recipes import gsm8k, math500_mia
from rewardstack_cli.recipes.judge_options import MODEL
from tests.data.conftest import PAIRS, ROOT, Refused, lines_of, rows_of, write_lines
from tests.support.snippets import FIGURES, assert_shown, block, blocks_of

PAGE = "docs/data.md"
TEXT = (ROOT / PAGE).read_text()
COMMANDS = [text for kind, text in blocks_of(PAGE) if kind == "bash" and text.startswith(("rewardstack", "cd scripts"))]
SHOWN = [after for before, after in pairwise(blocks_of(PAGE)) if before[1] in COMMANDS and not after[0]]
DIFFERS = rf"\b[0-9a-f]{{16}}\b|{FIGURES}"


class Reader(NamedTuple):
    """Somebody who has typed the page's commands.

    Args:
        home: the folder with what the commands wrote.
        printed: what they printed.
    """

    home: Path
    printed: str


@pytest.fixture(scope="module")
def reader(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Somebody who has the tree, MATH-500 and a model's solutions to the same problems."""
    home = tmp_path_factory.mktemp("reader")
    for name in ("examples", "scripts"):
        (home / name).symlink_to(ROOT / name)
    rows = lines_of(PAIRS)
    members = [{"problem": one["problem"], "solution": one["response"]} for one in rows if one["label"] == "member"]
    others = [{"problem": one["problem"], "response": one["response"]} for one in rows if one["label"] != "member"]
    write_lines(home / "MATH-500/test.jsonl", members)
    write_lines(home / "qwen_solutions.jsonl", others)
    return Reader(home, "".join(run(commands, home) for commands in COMMANDS))


def run(commands: str, home: Path) -> str:
    """What commands of the page print."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "HOME": str(home), "COLUMNS": "200"}
    command = ["bash", "-euc", commands]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands(reader: Reader) -> None:
    """Its commands prepare what they say; the script comes to the same as the command above it."""
    home = reader.home
    written = sorted(str(path.parent.relative_to(home)) for path in home.rglob("train.parquet"))
    assert written == ["data/gsm8k", "data/math500_mia", "data/pairs", "math500_mia"]
    for split in ("train", "test"):
        by_script = rows_of(home / f"math500_mia/{split}.parquet")
        assert by_script == rows_of(home / f"data/math500_mia/{split}.parquet")
    assert len(rows_of(home / "math500_mia/train.parquet")) == 22


def test_shown(reader: Reader, refused: Refused, tmp_path: Path) -> None:
    """What stands below commands is what they print; so is the error that it shows."""
    assert len(SHOWN) == 2
    for _, text in SHOWN:
        assert_shown(text, reader.printed, DIFFERS)
    [error] = [text for kind, text in blocks_of(PAGE) if not kind and text.startswith("rewardstack: error")]
    rows = [{"problem": "A", "response": "x", "label": label} for label in ("member", "maybe")]
    said = refused("math500-mia", write_lines(tmp_path / "responses.jsonl", rows))
    assert error == said.replace(f"{tmp_path}/", "")


def test_tables() -> None:
    """The tables have every option, and the defaults that the text gives are those in force."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    for recipe in ("math500-mia", "gsm8k"):
        with pytest.raises(SystemExit), redirect_stdout(said := StringIO()):
            parser.parse_args(["prepare", recipe, "--help"])
        options = {*re.findall(r"--[a-z][a-z-]+", said.getvalue())} - {"--help", "--output"}
        assert [option for option in options if f"`{option}" not in TEXT] == []
    for default in (MODEL, math500_mia.HUB, gsm8k.HUB, math500_mia.DATA_SOURCE):
        assert f"`{default}`" in TEXT


def test_python_is_there() -> None:
    """The lines that read the rows are there for `running_datasets.py`, which has the package that they need."""
    assert "load_dataset" in block(PAGE, "python", "import datasets")
