"""Canonical solutions of HumanEval and MBPP as samples, and mutants of them."""

from __future__ import annotations

import ast
import gzip
import json
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Solution(NamedTuple):
    """A program that solves a problem.

    Args:
        name: of the problem.
        program: the solution.
        tests: the ground truth, as the data set has it.
        script: tests as one program, which follows the solution's.
    """

    name: str
    program: str
    tests: dict[str, Any]
    script: str


def human_eval(path: Path) -> Iterator[Solution]:
    """Return the problems of the file `HumanEval.jsonl.gz`."""
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        row = json.loads(line)
        tests = {"test": row["test"], "entry_point": row["entry_point"], "test_setup_code": row["prompt"]}
        script = f"{row['test']}\ncheck({row['entry_point']})\n"
        yield Solution(row["task_id"], row["prompt"] + row["canonical_solution"], tests, script)


def mbpp(path: Path) -> Iterator[Solution]:
    """Return the problems of the file `mbpp_sanitized.jsonl`."""
    for line in path.read_text().splitlines():
        row = json.loads(line)
        tests = {"test_imports": row.get("test_imports", []), "test_list": row["test_list"]}
        script = "\n".join([*row.get("test_imports", []), *row["test_list"]])
        yield Solution(f"MBPP/{row['task_id']}", row["code"], tests, script)


def mutant(solution: Solution) -> Solution | None:
    """Return a solution with one constant changed, the same one in every run; None if it has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes in strings of the data
        tree = ast.parse(solution.program)
    constants = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)) and node.value != ""
    ]
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node for node in constants if id(node) not in docstrings]
    if not constants:
        return None
    node = random.Random(solution.name).choice(constants)
    if isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node.value, str):
        node.value = node.value + "x"
    elif isinstance(node.value, (int, float)):
        node.value = node.value + 1
    return solution._replace(program=ast.unparse(tree))
