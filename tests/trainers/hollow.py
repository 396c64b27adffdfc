"""Packages without what their `__init__` imports, so that one module of theirs runs where the rest cannot."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType


def hollow(package: str, inner: str) -> None:
    """Stands empty packages in for an installed one and for one in it, with the folders of both.

    Args:
        package: the installed one.
        inner: of the one in it.
    """
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None
    [folder] = spec.submodule_search_locations
    for name, path in ((package, folder), (f"{package}.{inner}", f"{folder}/{inner}")):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [path]
