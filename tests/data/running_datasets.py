"""With the package `datasets`, by which verl reads parquet and the hub is asked; `make data` installs it first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import pytest

from rewardstack_cli.main import main
from rewardstack_cli.recipes import gsm8k, math500_mia
from tests.data.conftest import GSM8K, PAIRS, Prepare, rows_of
from tests.support.snippets import block


@pytest.mark.parametrize(("recipe", "source"), [("math500-mia", PAIRS), ("gsm8k", GSM8K)])
def test_verl_reads(recipe: str, source: Path, prepare: Prepare, out: Path, tmp_path: Path) -> None:
    """`load_dataset("parquet", ...)`, as verl calls it, gives the rows that were written."""
    prepare(recipe, source)

    for split in ("train", "test"):
        file = out / f"{split}.parquet"
        cache = str(tmp_path / "cache")
        loaded = datasets.load_dataset("parquet", data_files=str(file), cache_dir=cache)["train"]
        assert [*loaded] == rows_of(file)


@pytest.mark.usefixtures("needs_process")
def test_document(prepare: Prepare, out: Path, tmp_path: Path) -> None:
    """The lines of docs/data.md that read the rows print what they say."""
    prepare("math500-mia", PAIRS)
    (tmp_path / "data").mkdir()
    out.rename(tmp_path / "data/pairs")
    code = block("docs/data.md", "python", "import datasets")

    environment = {**os.environ, "HF_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [line.partition("  # ")[2] for line in code.splitlines() if "  # " in line]


@pytest.mark.parametrize(("module", "config"), [(math500_mia, None), (gsm8k, "main")])
def test_hub(module: Any, config: str | None, prepare: Prepare, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the hub gives is read split by split, and is told by its digest; the hub itself is out of reach here."""
    files = (
        {"train": str(PAIRS)} if config is None else {name: str(GSM8K / f"{name}.jsonl") for name in ("train", "test")}
    )
    given = datasets.DatasetDict({name: datasets.Dataset.from_json(path) for name, path in files.items()})
    monkeypatch.setattr(datasets, "load_dataset", lambda name, chosen: {(module.HUB, config): given}[name, chosen])

    report = prepare(module.NAME)

    assert list(report["sources"][0]["sha256"]) == [f"{module.HUB}, {name}" for name in files]
    assert sum(about["rows"] for about in report["splits"].values()) == report["sources"][0]["rows"]


def test_out_of_reach(out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A hub that does not answer is no fault of the user's, and the remedy is named."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)

    assert main(["prepare", "gsm8k", "-o", str(out)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "openai/gsm8k could not be loaded from the Hugging Face Hub" in said
        and "hf download" in said
        and not out.exists()
    )
