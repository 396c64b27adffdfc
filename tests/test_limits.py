"""No test depends on how fast the machine is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.table import Table

TESTS = Path(__file__).parent
SHORT = 5.0
"""Seconds below which a real part on a busy machine may miss a limit."""
MARK = "# expires"
"""The comment of a limit that has to expire, because the test's fault never ends."""
LIMIT = re.compile(r"timeout|deadline|patience|stuck|silence|lease|time_limit|_wait\b|\bwait\b", re.IGNORECASE)
"""Names of limits: of arguments, keys, settings, and constants of a module."""
PASSED = re.compile(rf"{LIMIT.pattern}|seconds", re.IGNORECASE)
"""Names of limits that are passed to a function or patched; other names of seconds may be pauses."""
WAITS = {
    *("Deadline", "create_connection", "eventually", "join", "result", "timeout", "wait", "wait_for", "wait_for_port")
}
"""Functions whose positional numbers are limits."""
PATCHES = {"setattr", "setenv"}
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}


def test_short_limits(table: Table) -> None:
    """A limit below five seconds is marked as one that expires, and nothing is asserted about elapsed time."""
    for path in sorted(TESTS.rglob("*.py")):
        with table.case(str(path.relative_to(TESTS))):
            text = path.read_text()
            lines, nodes = text.splitlines(), list(ast.walk(ast.parse(text)))
            short = {number.lineno for number in _limits(nodes) if MARK not in lines[number.lineno - 1]}
            assert not short, f"lines {sorted(short)}: wait for at least 30 s, or mark a limit that expires: {MARK}"
            timed = {one.lineno for one in nodes if isinstance(one, ast.Assert) and _has_duration(one.test)}
            assert not timed, f"lines {sorted(timed)}: a test does not assert how long something took"


def _limits(nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Yield the numbers of a module that are limits below `SHORT`."""
    polls = {id(call) for node in nodes if isinstance(node, ast.While) for call in ast.walk(node.test)}
    for node in nodes:
        yield from (value for name, value in _passed(node) if _is_short(value) and PASSED.search(_text(name)))
        yield from (value for name, value in _written(node) if _is_short(value) and LIMIT.search(_text(name)))
        if isinstance(node, ast.Call) and _name(node.func) in WAITS and id(node) not in polls:
            yield from filter(_is_short, node.args)


def _passed(node: ast.AST) -> Iterator[tuple[ast.expr | str, ast.expr]]:
    """Yield the names and values of keyword arguments, parameters and patches in a node."""
    if isinstance(node, ast.keyword) and node.arg:
        yield node.arg, node.value
    elif isinstance(node, ast.Call) and _name(node.func) in PATCHES and len(node.args) > 1:
        yield node.args[-2], node.args[-1]
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        yield from zip((one.arg for one in positional[-len(node.defaults) :]), node.defaults, strict=False)
        yield from ((one.arg, value) for one, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value)


def _written(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the names and values of keys and variables in a node."""
    if isinstance(node, ast.Dict):
        yield from ((key, value) for key, value in zip(node.keys, node.values, strict=True) if key)
    elif isinstance(node, ast.Assign):
        yield from _pairs(node.targets[0], node.value)
    elif isinstance(node, ast.AnnAssign) and node.value:
        yield node.target, node.value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def _text(name: ast.expr | str) -> str:
    return name if isinstance(name, str) else ast.unparse(name)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_short(value: ast.expr) -> bool:
    if not isinstance(value, ast.Constant) or not isinstance(value.value, int | float | str) or value.value is True:
        return False
    try:
        return 0 < float(value.value) < SHORT
    except ValueError:
        return False


def _has_duration(test: ast.expr) -> bool:
    """Return whether an assertion compares the difference between two readings of a clock."""
    return any(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, ast.Sub)
        and any(isinstance(call, ast.Call) and _name(call.func) in CLOCKS for call in ast.walk(one))
        for one in ast.walk(test)
    )
