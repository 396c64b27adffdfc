"""Compute the fingerprint of a custom reward function: a hash of its source, local imports and library versions.

The fingerprint is part of the cache key, so a change to any of these invalidates older cached scores. For rewardstack's
own packages, `VERDICT_VERSION` and `BINDING_VERSION` are hashed instead of their sources. The fingerprint does not
cover files and environment variables that a function reads, modules that it imports by a computed name, local modules
that are compiled, or the dependencies of libraries.
"""

from __future__ import annotations

import ast
import importlib.util
import platform
import sys
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from itertools import product
from pathlib import Path

VERDICT_VERSION = "9"
"""Version of the results of built-in reward functions. Raise it if the `value` or `reason` of a score changes, and only
then, because a new version invalidates cached scores. `tests/rules/test_verdict_version.py` fails if you forget it."""
BINDING_VERSION = "2"
"""Version of the binding: which arguments custom functions get, and how their results are read. Raise it when either
changes."""
OWN_PACKAGES = ("rewardstack_rules", "rewardstack", "rewardstack_settings", "rewardstack_verifier")


def fingerprint(path: Path) -> str:
    """Return a hash of a file, its local imports, and the versions of its libraries, of Python and of rewardstack.

    Args:
        path: the Python file.

    Returns:
        16 hexadecimal digits.
    """
    digest = blake2b(digest_size=8)
    for part in sorted(_dependencies(path)):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _dependencies(path: Path) -> set[str]:
    """Return the texts to hash: all versions as `name==version`, and hashes of the file and of its local imports."""
    parts = {f"python=={platform.python_version()}", f"verdicts=={VERDICT_VERSION}", f"binding=={BINDING_VERSION}"}
    pending, seen = [(path, "")], {path}
    while pending:
        source, package = pending.pop()
        text = source.read_bytes()
        parts.add(blake2b(text, digest_size=16).hexdigest())
        for module in _imports(text, package):
            if library := _library(module):
                parts.add(library)
                continue
            for found, parent in _local_sources(module):
                if found not in seen:
                    seen.add(found)
                    pending.append((found, parent))
    return parts


def _imports(source: bytes, package: str) -> Iterator[str]:
    """Yield the dotted names in all import statements of a source; `from a import b` yields `a` and `a.b`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(name, package) if node.level else name
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _library(module: str) -> str:
    """Return `name==version` of a module's library; empty for a local module or one of Python or rewardstack."""
    top = module.partition(".")[0]
    if top in OWN_PACKAGES or top in sys.stdlib_module_names:
        return ""
    names = _distributions().get(top, ())
    return " ".join(f"{name}=={_version(name)}" for name in sorted(set(names)))


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    return dict(packages_distributions())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _local_sources(module: str) -> Iterator[tuple[Path, str]]:
    """Yield the source files of a local module and of the packages around it; import no module.

    Yields:
        A file, and the package to which its relative imports refer.
    """
    top, *inner = module.split(".")
    if top in OWN_PACKAGES or top in sys.stdlib_module_names:
        return
    spec = importlib.util.find_spec(top)
    if spec is None:
        return
    if not spec.submodule_search_locations:
        if spec.origin and spec.origin.endswith(".py"):
            yield Path(spec.origin), ""
        return
    for depth, folder in product(range(len(inner) + 1), spec.submodule_search_locations):
        path, name = Path(folder).joinpath(*inner[:depth]), ".".join((top, *inner[:depth]))
        if (path / "__init__.py").is_file():
            yield path / "__init__.py", name
        elif path.with_suffix(".py").is_file():
            yield path.with_suffix(".py"), name.rpartition(".")[0]
