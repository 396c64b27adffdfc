"""Generate files and parts of files from the tables of settings and services, and write the version.

The generated texts are `.env`, the tables of `docs/settings.md`, parts of the compose files and launchers, and files of
the chart. A generated part is between a line with `<KIND NAME>`, such as `<service judge>`, and a line with `</KIND>`.
The module `version` lists the files that contain the version.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from rewardstack_settings.setting import Section, Setting
from services.stack import chart, compose_files, version
from services.stack.settings_table import READERS, SECTIONS, settings_in

COMPOSE_FILES = "compose*.yaml"
USERS_FILE = "compose.override.yaml"
DOCUMENT = "docs/settings.md"
WIDTH = 118
PART = re.compile(
    r"^(?P<indent> *)(?P<begin>\S.*<(?P<name>(?P<kind>settings|service|secrets|launcher) .+?)>.*\n)(?:.*\n)*?"
    r"(?P<end>.*</(?P=kind)>.*\n)",
    re.M,
)
DEFAULT = re.compile(r"\$\{(?P<name>[A-Z_]+)(?P<dash>:?-)(?P<text>[^{}]*)\}")
LINK = re.compile(r"\[(.*?)\]\(.*?\)")
HEAD = """\
# Written from the table of settings, services/stack/settings_table.py, by `make settings`: the only list of images,
# ports, models and limits. Put your lasting settings, keys and passwords into .env.local, which beats this file.
"""


def write(root: Path) -> list[str]:
    """Update every generated file of the checkout at `root`, and return the names of the changed files."""
    changed = {path: text for path, text in render_files(root).items() if current_text(path) != text}
    for path, text in changed.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return sorted(str(path.relative_to(root)) for path in changed)


def render_files(root: Path) -> dict[Path, str]:
    """Return the text of each generated file, by path, for the checkout at `root`."""
    document = root / DOCUMENT
    texts = {root / ".env": dotenv(), document: _fill_parts(document, tables())}
    parts = compose_files.parts()
    for path in {*root.glob(COMPOSE_FILES)} - {root / USERS_FILE}:
        texts[path] = DEFAULT.sub(_default, _fill_parts(path, parts))
    texts |= {root / name: _fill_parts(root / name, parts) for name in compose_files.LAUNCHERS}
    texts |= chart.render_files(root)
    number = version.read(root)
    for path in version.files(root):
        texts[path] = version.replace(texts.get(path) or current_text(path), number)
    return texts


def current_text(path: Path) -> str:
    """Return the current text of a file; empty if it does not exist."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def dotenv() -> str:
    """Return the text of `.env`."""
    parts = [HEAD]
    for section in SECTIONS:
        if section.place == ".env":
            parts.append(f"\n# --- {section.title}\n{''.join(map(_line, section.settings))}")
    return "".join(parts)


def _line(setting: Setting) -> str:
    comment = textwrap.fill(
        LINK.sub(r"\1", setting.help), WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
    return f"{comment}\n{setting.name}={setting.default}\n"


def tables() -> dict[str, list[str]]:
    """Return the lines of each section's table in the documentation, by the name of the generated part."""
    return {f"settings {section.title}": _table(section) for section in SECTIONS if section.place != "compose"}


def _table(section: Section) -> list[str]:
    rows = ["| name | default | read by | meaning |", "| --- | --- | --- | --- |"]
    for setting in section.settings:
        default = f"`{setting.default}`" if setting.default else ""
        readers = ", ".join(READERS[reader] for reader in setting.readers)
        rows.append(f"| `{setting.name}` | {default} | {readers} | {setting.help} |")
    return ["", *rows, ""]


def _fill_parts(path: Path, parts: Mapping[str, Iterable[str]]) -> str:
    def fill(found: re.Match[str]) -> str:
        indent = found["indent"]
        lines = "".join(f"{indent}{line}".rstrip() + "\n" for line in parts[found["name"]])
        return f"{indent}{found['begin']}{lines}{found['end']}"

    return PART.sub(fill, path.read_text(encoding="utf-8"))


def _default(found: re.Match[str]) -> str:
    """Return a reference such as `${NAME:-text}`.

    If NAME is an internal setting (`INTERNAL` in the table), its default replaces the text.
    """
    setting = settings_in("compose").get(found["name"])
    return f"${{{found['name']}{found['dash']}{setting.default if setting else found['text']}}}"
