"""Read the data set of a recipe from the Hugging Face Hub, or from a local file or folder."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rewardstack.core.jsonl import BOM
from rewardstack.errors import RequestError, SettingsError, UnreachableError
from rewardstack_cli.data.rows import Row, to_json
from rewardstack_cli.data.source import JSONL, PARQUET, Source

JSON = ".json"
SUFFIXES = (JSONL, PARQUET, JSON)
SPLITS = ("train", "test")


class SplitRow(NamedTuple):
    """A row of a data set.

    Args:
        split: the split that the row comes from, one of `SPLITS`; None if unknown.
        row: the row.
    """

    split: str | None
    row: Row


class Dataset(NamedTuple):
    """The rows of a data set.

    Args:
        name: name or path of the data set, as the user wrote it.
        digests: SHA-256 of each file; the keys are the paths. For a data set on the Hub, SHA-256 of each split, written
            as JSON lines; the keys are `NAME, SPLIT`.
        rows: the rows, in order.
    """

    name: str
    digests: dict[str, str]
    rows: list[SplitRow]


def read_dataset(name: str, config: str | None = None) -> Dataset:
    """Read a data set from a path or from the Hugging Face Hub.

    Args:
        name: a path; if there is no such path, `ORGANIZATION/NAME` on the Hub.
        config: configuration to load from the Hub; None if the data set has only one.

    Raises:
        RequestError: there is no such data set, or a row is malformed (the message names file and row).
        SettingsError: a package is missing; the message names the package.
        UnreachableError: the Hub did not answer; the message has the remedy.
    """
    path = Path(name)
    if path.is_file():
        files = [path]
    elif path.is_dir():
        files = _list_files(path)
    elif path.suffix in SUFFIXES or name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise RequestError(f"INPUT: there is no file or folder {name}", "INPUT")
    else:
        return _load_from_hub(name, config)
    digests = {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    return Dataset(name, digests, [SplitRow(_split_from_name(file), row) for file in files for row in _read_rows(file)])


def read_text(row: Row, *names: str) -> str:
    """Return the text in the first of these fields that is set; the text may be blank.

    Raises:
        RequestError: the row has none of the fields, or the value is not text; the message names file, row and field.
    """
    name = next((name for name in names if row.fields.get(name) is not None), None)
    if name is None:
        raise row_error(row, names[0], f"is missing{''.join(f' (and so is {other})' for other in names[1:])}")
    value = row.fields[name]
    if not isinstance(value, str):
        raise row_error(row, name, f"must be a string, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise row_error(row, name, "contains an unpaired surrogate, which is not a valid character") from error
    return value


def row_error(row: Row, field: str, why: str) -> RequestError:
    """Return the error for a row that cannot be used; the message names file, row and field."""
    return RequestError(f"{row.location}: {field} {why}", field)


def _list_files(folder: Path) -> list[Path]:
    data_files = [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    files = [path for path in data_files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not files:
        raise RequestError(f"INPUT: the folder {folder} has no file that ends in {', '.join(SUFFIXES)}", "INPUT")
    return files


def _split_from_name(file: Path) -> str | None:
    """Return the split that a file's name begins with, as in `train-00000-of-00001.parquet`; None for other names."""
    word = file.stem.lower().replace("_", "-").replace(".", "-").partition("-")[0]
    return word if word in SPLITS else None


def _read_rows(file: Path) -> Iterator[Row]:
    if file.suffix in (JSONL, PARQUET):
        return Source(file).rows()
    if file.suffix == JSON:
        return _read_array(file)
    raise RequestError(f"INPUT: {file} ends in none of {', '.join(SUFFIXES)}", "INPUT")


def _read_array(file: Path) -> Iterator[Row]:
    """Yield the objects in a JSON file, which must be an array of objects."""
    try:
        array = json.loads(file.read_bytes().removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{file}: not JSON: {error}", "INPUT") from error
    if not isinstance(array, list):
        raise RequestError(f"{file}: expected an array of objects, got {type(array).__name__}", "INPUT")
    for number, fields in enumerate(array, 1):
        if not isinstance(fields, dict):
            raise RequestError(f"{file}, row {number}: expected an object, got {type(fields).__name__}", "INPUT")
        yield Row(file, f"row {number}", fields)


def _load_from_hub(name: str, config: str | None) -> Dataset:
    remedy = (
        f"download it on a machine that reaches the Hub (hf download --repo-type dataset {name} --local-dir FOLDER)"
    )
    if find_spec("datasets") is None:
        raise SettingsError(
            f"INPUT: there is no file or folder {name}, and loading it from the Hugging Face Hub needs the package "
            f"datasets: pip install datasets; or {remedy}, and use FOLDER instead",
            "INPUT",
        )
    import datasets

    logging.getLogger("huggingface_hub").propagate = False  # the logger's own handler already prints the messages
    try:
        loaded = datasets.load_dataset(name, config)
    except (datasets.exceptions.DatasetsError, FileNotFoundError, ValueError) as error:
        raise RequestError(f"INPUT: {name} cannot be loaded from the Hugging Face Hub: {error}", "INPUT") from error
    except OSError as error:
        raise UnreachableError(
            f"{name} could not be loaded from the Hugging Face Hub: {error}; {remedy}, and use FOLDER"
        ) from error
    digests: dict[str, str] = {}
    rows: list[SplitRow] = []
    for split, table in loaded.items():
        fields: list[dict[str, Any]] = list(table)
        digests[f"{name}, {split}"] = hashlib.sha256(b"".join(to_json(one) + b"\n" for one in fields)).hexdigest()
        known_split = split if split in SPLITS else None
        rows += [SplitRow(known_split, Row(Path(name), f"{split}, row {at}", one)) for at, one in enumerate(fields, 1)]
    return Dataset(name, digests, rows)
