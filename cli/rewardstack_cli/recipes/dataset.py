"""The data set that a recipe reads: a name on the model hub, or a local copy (a file, or a folder of files)."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rewardstack.errors import RequestError, SettingsError, UnreachableError
from rewardstack_cli.data.rows import Row, to_json
from rewardstack_cli.data.source import BOM, JSONL, PARQUET, Source

JSON = ".json"
SUFFIXES = (JSONL, PARQUET, JSON)
SPLITS = ("train", "test")


class SplitRow(NamedTuple):
    """A row of a data set.

    Args:
        split: that it comes from, one of `SPLITS`; None where nothing says so.
        row: its fields, and where it stands.
    """

    split: str | None
    row: Row


class Dataset(NamedTuple):
    """What was read.

    Args:
        name: as the user wrote it.
        digests: SHA-256 by file; of the hub by split, of the rows as JSON lines.
        rows: in order.
    """

    name: str
    digests: dict[str, str]
    rows: list[SplitRow]


def read_dataset(name: str, config: str | None = None) -> Dataset:
    """Reads a data set.

    Args:
        name: a path, or where there is nothing of that name `ORGANIZATION/NAME` on the model hub.
        config: the configuration that the hub is asked for; None for its only one.

    Raises:
        RequestError: there is no such data set, or a row is malformed; names file and row.
        SettingsError: a package is missing; names it.
        UnreachableError: the hub gave no answer; names the remedy.
    """
    path = Path(name)
    if path.is_file():
        files = [path]
    elif path.is_dir():
        files = _files(path)
    elif path.suffix in SUFFIXES or name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise RequestError(f"INPUT: there is no file or folder {name}", "INPUT")
    else:
        return _from_hub(name, config)
    digests = {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    return Dataset(name, digests, [SplitRow(_split_of(file), row) for file in files for row in _rows(file)])


def text_of(row: Row, *names: str) -> str:
    """The text in the first of these fields that the row has; it may be blank.

    Raises:
        RequestError: it has none of them, or what it has is no text; names file, row and field.
    """
    name = next((name for name in names if row.fields.get(name) is not None), None)
    if name is None:
        raise malformed(row, names[0], f"is missing{''.join(f' (and so is {other})' for other in names[1:])}")
    value = row.fields[name]
    if not isinstance(value, str):
        raise malformed(row, name, f"has to be a string, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise malformed(row, name, "holds half of a surrogate pair, which is no character") from error
    return value


def malformed(row: Row, field: str, why: str) -> RequestError:
    """The error of a row that cannot be used: file, row, field, and what it is or has to be."""
    return RequestError(f"{row.place}: {field} {why}", field)


def _files(folder: Path) -> list[Path]:
    inside = [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    files = [path for path in inside if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not files:
        raise RequestError(f"INPUT: the folder {folder} holds no file that ends in {', '.join(SUFFIXES)}", "INPUT")
    return files


def _split_of(file: Path) -> str | None:
    """By the beginning of the file's name, as the hub has it: `train-00000-of-00001.parquet`."""
    word = file.stem.lower().replace("_", "-").replace(".", "-").partition("-")[0]
    return word if word in SPLITS else None


def _rows(file: Path) -> Iterator[Row]:
    if file.suffix in (JSONL, PARQUET):
        return Source(file).rows()
    if file.suffix == JSON:
        return _elements(file)
    raise RequestError(f"INPUT: {file} ends in none of {', '.join(SUFFIXES)}", "INPUT")


def _elements(file: Path) -> Iterator[Row]:
    """The objects of a JSON file that holds one array."""
    try:
        elements = json.loads(file.read_bytes().removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{file}: not JSON: {error}", "INPUT") from error
    if not isinstance(elements, list):
        raise RequestError(f"{file}: expected an array of objects, got {type(elements).__name__}", "INPUT")
    for number, fields in enumerate(elements, 1):
        if not isinstance(fields, dict):
            raise RequestError(f"{file}, row {number}: expected an object, got {type(fields).__name__}", "INPUT")
        yield Row(file, f"row {number}", fields)


def _from_hub(name: str, config: str | None) -> Dataset:
    remedy = f"download it where the hub is in reach (hf download --repo-type dataset {name} --local-dir FOLDER)"
    if find_spec("datasets") is None:
        raise SettingsError(
            f"INPUT: there is no file or folder {name}, and to load it from the hub needs the package datasets: "
            f"pip install datasets; or {remedy}, and name FOLDER in its place",
            "INPUT",
        )
    import datasets

    logging.getLogger("huggingface_hub").propagate = False  # it says everything on stderr itself
    try:
        loaded = datasets.load_dataset(name, config)
    except (datasets.exceptions.DatasetsError, FileNotFoundError, ValueError) as error:
        raise RequestError(f"INPUT: the hub has no data set {name} to load: {error}", "INPUT") from error
    except OSError as error:
        raise UnreachableError(f"{name} did not come from the hub: {error}; {remedy}, and name FOLDER") from error
    digests: dict[str, str] = {}
    rows: list[SplitRow] = []
    for split, table in loaded.items():
        fields: list[dict[str, Any]] = list(table)
        digests[f"{name}, {split}"] = hashlib.sha256(b"".join(to_json(one) + b"\n" for one in fields)).hexdigest()
        known = split if split in SPLITS else None
        rows += [SplitRow(known, Row(Path(name), f"{split}, row {at}", one)) for at, one in enumerate(fields, 1)]
    return Dataset(name, digests, rows)
