"""What import-linter cannot check: packages that have no contract, and modules that are named in strings."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "services" / "rules"
ROOTS = ("rewardstack", "rewardstack_rules")
EXAMPLE = "rewardstack_rules.reward_functions"
"""A file for users, which imports what users import."""
FOLDERS = (ROOT / "client", ROOT / "cli", ROOT / "verifier", RULES, ROOT / "services")
"""The folders that are on Python's path; the first that holds a file decides on the module's name."""
IMPORTERS = {
    "rewardstack_cli.main": {"import_module"},  # the command that the user names
    "rewardstack.trainers.skyrl": {"import_module"},  # the experiment that the user names
    "rewardstack_rules.code.inside.tester": {"import_module"},  # the standard library's, by their names
    "rewardstack_rules.code.inside.values": {"import_module"},
    "rewardstack_rules.functions.user_functions": {
        "SourceFileLoader",
        "exec_module",
        "module_from_spec",
        "spec_from_file_location",
    },
    "rewardstack_rules.isolation.process": {"import_module"},  # the function that a task names
    "services.embedding.tei_python.model": {"import_module"},  # the package that carries a model
    "services.stack.entry": {"import_module"},  # the command of a `__main__`
    "services.stack.settings_table": {"run_path"},  # the tables of the client and the reward server
}
"""Modules that import at run time, and how."""
NAMED = {
    "rewardstack.transport.ray_actor": {"rewardstack.ray_judge"},  # in the text of an error
    "rewardstack_rules.run_reward_server": {"rewardstack_rules.http.gunicorn_conf"},
    "rewardstack_rules.scoring.pools": {"rewardstack_rules.code.runner"},  # what the processes for programs import
    "services.judge.run_vllm_server": {"services.up.native.judges"},  # which replaces its process
    "services.stack.settings_table": {"rewardstack.ray_judge"},  # in the text of a setting
    "services.stack.services_table": {  # the commands of services
        "rewardstack_rules.http.gunicorn_conf",
        "rewardstack_rules.http.healthcheck",
        "rewardstack_rules.jobs.worker",
    },
    "services.up.native.up": {"rewardstack_rules.functions.catalog", "rewardstack_rules.jobs.worker"},
}
"""Modules that name modules of other packages in strings, for example as programs to start."""
DYNAMIC = re.compile(
    r"\b(?:__import__|import_module|exec_module|load_module|module_from_spec|spec_from_\w+|run_module|run_path|\w+FileLoader)\b"
)
DOTTED = re.compile(r"\b(?:rewardstack(?:_\w+)?|services)(?:\.\w+)+")
OUTSIDE_IMPORTS = re.compile(rf"^(?!from |import ).*{DOTTED.pattern}", re.MULTILINE)
FROM_THE_TOP = re.compile(r"\bfrom (?:rewardstack|rewardstack_rules) import\b")


def modules() -> dict[str, str]:
    """The source of the client and the services, by the dotted names of their modules."""
    sources = {}
    for file in sorted({file for folder in FOLDERS for file in folder.rglob("*.py")}):
        folder = next(folder for folder in FOLDERS if file.is_relative_to(folder))
        prefix = "services." if folder == FOLDERS[-1] else ""
        path = file.relative_to(folder).with_suffix("").parts
        sources[prefix + ".".join(path).removesuffix(".__init__")] = file.read_text(encoding="utf-8")
    return sources


MODULES = modules()


def trees(pattern: re.Pattern[str]) -> Iterator[tuple[str, ast.Module]]:
    """The modules whose source has a pattern, with their syntax trees."""
    return ((module, ast.parse(source)) for module, source in MODULES.items() if pattern.search(source))


def package(module: str) -> str:
    """The part of the project that a contract names: `rewardstack.core` of `rewardstack.core.wire`."""
    return ".".join(module.split(".")[:2])


def identifiers(tree: ast.Module) -> Iterator[str]:
    """Every name, attribute and imported name of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


def strings(tree: ast.Module) -> Iterator[str]:
    """Every string of a module but the docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def named(text: str) -> Iterator[str]:
    """The project's modules that a string names, also with an attribute behind the module."""
    for match in DOTTED.finditer(text):
        name = match.group()
        while name not in MODULES and "." in name:
            name = name.rpartition(".")[0]
        if "." in name:
            yield name


def test_packages_have_contracts() -> None:
    """import-linter reads every package of the client and every folder of the services with Python files."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    found = {package(name) if name.startswith("services.") else name.partition(".")[0] for name in MODULES}
    assert set(settings["root_packages"]) == found


def test_modules_that_import_at_run_time() -> None:
    """Only the listed modules import modules at run time, each in the listed manner."""
    found = {module: {word for word in identifiers(tree) if DYNAMIC.fullmatch(word)} for module, tree in trees(DYNAMIC)}
    assert {module: words for module, words in found.items() if words} == IMPORTERS


def test_modules_named_in_strings() -> None:
    """Only the listed modules name modules of other packages in strings; none of the client names the server."""
    found = {
        module: {name for text in strings(tree) for name in named(text) if package(name) != package(module)}
        for module, tree in trees(OUTSIDE_IMPORTS)
    }
    assert {module: names for module, names in found.items() if names} == NAMED


def test_names_from_the_top_of_a_package() -> None:
    """Modules import nothing but modules and the version from `rewardstack` and `rewardstack_rules` themselves."""
    for module, tree in trees(FROM_THE_TOP):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in ROOTS and module != EXAMPLE:
                names = {name.name for name in node.names if f"{node.module}.{name.name}" not in MODULES}
                assert names <= {"__version__"}, module
