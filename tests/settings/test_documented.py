"""One list of settings: what code looks up and what is documented stands in the table."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.embedding.tei_python import settings as tei_python
from services.judge.run_vllm_server import FROM_ENVIRONMENT
from services.stack.settings_table import TABLE, read_by, settings_in

ROOT = Path(__file__).resolve().parents[2]
OF_THE_SYSTEM = {
    "COLUMNS",
    "CUDA_VISIBLE_DEVICES",
    "GOMP_SPINCOUNT",
    "NO_COLOR",
    "TERM",
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "HF_TOKEN",
    "OMP_WAIT_POLICY",
    "PATH",
    "SSL_CERT_FILE",
    "TMPDIR",
    "RAY_ADDRESS",
    "RAY_AUTH_MODE",
    "RAY_AUTH_TOKEN",
    "RAY_AUTH_TOKEN_PATH",
    "XDG_CACHE_HOME",
}
"""Variables of the machine and of other software, not of this project."""
LOOKS_UP = re.compile(r"environ|getenv")
"""What a module contains that looks up a variable."""
NO_SETTINGS = {"COMPOSE_PROJECT_NAME", "REWARDSTACK_ENV_OF", "discovery"}
"""Compose's own, the mark of `apptainer/stack.sh env`, and what `make up` passes to `watch`: nobody sets them."""


def documented() -> set[str]:
    """The variables in the first column of the tables of docs/settings.md."""
    return set(re.findall(r"^\| `([A-Z][A-Z0-9_]+)` \|", (ROOT / "docs/settings.md").read_text(), re.MULTILINE))


def test_code_and_documentation() -> None:
    """Every variable that code looks up is in the table, and what the table has is documented."""
    modules = [path for place in ("client", "cli", "verifier", "services") for path in (ROOT / place).rglob("*.py")]
    texts = [text for path in modules if LOOKS_UP.search(text := path.read_text())]
    looked_up = {name for text in texts for name in read_by_name(ast.parse(text))} - OF_THE_SYSTEM
    assert looked_up <= {*TABLE, *NO_SETTINGS}
    assert documented() == set(settings_in(".env", "environment"))


def test_environment_of_the_launchers() -> None:
    """Every variable of `run_vllm_server.py` is in the table."""
    assert {*FROM_ENVIRONMENT} <= {*read_by("vllm-python")}


def test_defaults_of_the_launchers() -> None:
    """A default that a script has of its own is the table's, and so are those of the embedding server in Python."""
    scripts = "".join(path.read_text() for path in (ROOT / "services").rglob("*.sh"))
    own = {(name, text) for name, text in re.findall(r"\$\{([A-Z_]+):-([\w.]+)\}", scripts) if TABLE[name].default}
    assert own == {(name, TABLE[name].default) for name, _ in own}
    parsed = tei_python.parse([], {})
    assert [str(parsed.max_batch_tokens), str(parsed.max_client_batch_size)] == [
        TABLE["MAX_BATCH_TOKENS"].default,
        TABLE["MAX_CLIENT_BATCH_SIZE"].default,
    ]


@pytest.mark.usefixtures("needs_process")
def test_nothing_but_python() -> None:
    """An interpreter without any package reads the table: launchers run with what a machine has."""
    code = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'client')!r}]; import services.stack.settings_table"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, timeout=60)


def read_by_name(module: ast.Module) -> Iterator[str]:
    """The names that a module looks up in `os.environ`, as literals or as constants of its own."""
    constants = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        name = looked_up(node)
        name = constants.get(name.id, name) if isinstance(name, ast.Name) else name
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value


def looked_up(node: ast.AST) -> ast.expr | None:
    """What `os.environ[…]`, `os.environ.get(…)`, `os.getenv(…)` or `… in os.environ` looks up."""
    if isinstance(node, ast.Subscript) and is_environment(node.value):
        return node.slice
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        return node.args[0] if node.func.attr == "getenv" or is_environment(node.func.value) else None
    if isinstance(node, ast.Compare) and is_environment(node.comparators[0]):
        return node.left
    return None


def is_environment(node: ast.expr) -> bool:
    """Whether an expression is `os.environ`, or a mapping that takes its place."""
    return isinstance(node, ast.Attribute | ast.Name) and getattr(node, "attr", getattr(node, "id", "")) == "environ"
