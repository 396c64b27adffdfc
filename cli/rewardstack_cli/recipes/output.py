"""Write the report and the parquet files for verl; each file is written completely or not at all."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from rewardstack.errors import RequestError
from rewardstack_cli.recipes.prepared import Prepared

REPORT = "report.json"
"""Name of the report's file."""
VERSION = 1
"""Version of the report's format."""


def write(folder: Path, recipe: str, seed: int, prepared: Prepared) -> dict[str, Any]:
    """Write `SPLIT.parquet` for each split that has rows, and the report next to them.

    All files are written under temporary names first, and renamed when all of them are complete.

    Args:
        folder: the folder for all files; created if it does not exist.
        recipe: name of the recipe.
        seed: seed of the random choices.
        prepared: the rows.

    Returns:
        The report. It has no timestamp, so that the same input, options and seed give the same bytes.

    Raises:
        RequestError: the folder is not writable, or has a file of an earlier run for a split that has no rows now.
    """
    _check_leftovers(folder, prepared)
    temporary_paths: dict[Path, Path] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        report = _write_temporary(folder, recipe, seed, prepared, temporary_paths)
        for path, temporary in temporary_paths.items():
            temporary.replace(path)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise RequestError(f"-o: {error.filename or folder}: {error.strerror}", "-o") from error
    finally:
        for temporary in temporary_paths.values():
            temporary.unlink(missing_ok=True)
    return report


def _check_leftovers(folder: Path, prepared: Prepared) -> None:
    for name, rows in prepared.splits.items():
        path = folder / f"{name}.parquet"
        if not rows and path.exists():
            why = "is from another run, and this run has no rows for it; remove it, or name another folder"
            raise RequestError(f"-o: {path} {why}", "-o")


def _write_temporary(
    folder: Path, recipe: str, seed: int, prepared: Prepared, temporary_paths: dict[Path, Path]
) -> dict[str, Any]:
    """Write all files under temporary names, which are added to `temporary_paths`, and return the report."""
    files = {}
    for name, rows in prepared.splits.items():
        if rows:
            path = folder / f"{name}.parquet"
            temporary_paths[path] = path.with_name(path.name + ".tmp")
            _write_parquet(temporary_paths[path], rows)
            files[name] = _describe_file(temporary_paths[path], path.name, rows)
    report = _make_report(recipe, seed, prepared, files)
    temporary_paths[folder / REPORT] = folder / f"{REPORT}.tmp"
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    temporary_paths[folder / REPORT].write_text(text, encoding="utf-8")
    return report


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path)


def _describe_file(path: Path, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    labels = Counter(row["extra_info"]["label"] for row in rows if "label" in row["extra_info"])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"file": name, "rows": len(rows), "labels": dict(sorted(labels.items())), "sha256": digest}


def _make_report(recipe: str, seed: int, prepared: Prepared, files: dict[str, Any]) -> dict[str, Any]:
    sources = [{"name": one.name, "rows": len(one.rows), "sha256": one.digests} for one in prepared.sources]
    return {
        "version": VERSION,
        "recipe": recipe,
        "seed": seed,
        "sources": sources,
        "settings": prepared.settings,
        "splits": files,
        "dropped": prepared.dropped.record(),
    }
