"""Programs are scored over HTTP: values, parts, reasons, statuses and what is cached."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import rewardstack
from rewardstack import Request
from rewardstack.errors import ConfigError
from tests.code.cases import sample
from tests.rules.conftest import RewardServer
from tests.support.snippets import ROOT, block
from tests.support.table import Table

SUM = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}
ADD = "print(sum(map(int, input().split())))"
ONE = {"inputs": [""], "outputs": ["1"]}
ASSERTS = ["assert f(1) == 2", "assert f(2) == 3", "assert f(3) == 5", "assert f(4) == 5"]
TREE = """
class Node:
    def __init__(self, value, children=()):
        self.value, self.children = value, list(children)
    def __len__(self): return 1 + sum(map(len, self.children))
    def __str__(self): return f"Node {self.value}"
class Empty(ValueError): pass
def total(node): return node.value + sum(map(total, node.children))
def fill(xs): xs.append(1)
def walk(n):
    for i in range(n): yield i
def apply(f, x): return f(x)
def scaled(f, x): return f(x, by=3)
def fail(): raise Empty("nothing")
LIMIT = (1, {2, 3})
Point = collections.namedtuple("Point", "x y")
class Pair(typing.NamedTuple):
    left: int
    right: list
def point(): return Point(1, Pair(2, [3]))
def x_of(p): return p.x
class Secret(tuple): _fields = ("__class__", "def")
"""
TREE_TESTS = [
    "n = Node(1, [Node(2), Node(3)])\nassert total(n) == 6 and len(n) == 3 and str(n) == 'Node 1'",
    "assert n.value == 1\nn.value = 5\nassert n.value == 5 and n.children[0].value == 2",
    "xs = []\nfill(xs)\nassert xs == [1]",
    "assert list(walk(3)) == [0, 1, 2]",
    "assert apply(lambda x: x * 2, 21) == 42",
    "assert scaled(lambda x, by=1: x * by, 14) == 42",
    "try:\n    fail()\nexcept Empty as error:\n    assert 'nothing' in str(error)\nelse:\n    assert False",
    "assert isinstance(n, Node)",
    "assert LIMIT == (1, {2, 3})",
    "p = point()\nassert p.x == 1 and p.y.right == [3] and p == (1, (2, [3])) and p._replace(x=5).x == 5",
    "assert x_of(Point(7, 8)) == 7 and x_of(p) == 1 and Secret((1, 2)) == (1, 2)",
    "from solution import total as t\nassert t(Node(4)) == 4",
    "def test_walk():\n    assert max(walk(4)) == 3",
]
POWER = "1" + "0" * 5000
"""10 ** 5000, with more digits than Python reads and writes by default."""
BUILTINS = """
import json, os, struct
def send(fd, message):
    data = json.dumps(message).encode()
    os.write(fd, struct.pack("!I", len(data)) + data)
names = {"half": {"object": [0, "", []]}, "__builtins__": {"dict": [["abs", {"object": [1, "", []]}]]}}
for fd in range(3, 10):
    try:
        send(fd, {"names": names})
        while True:
            message = json.loads(os.read(fd, struct.unpack("!I", os.read(fd, 4))[0]))
            send(fd, {"result": 0, "args": message["args"]})
    except OSError:
        pass
"""
"""A program that sends the tests its own `abs`, instead of waiting until it is asked."""
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "all tests pass": (sample(ADD, SUM), (1.0, 2, "")),
    "one fails": (sample("print(3)", SUM), (0.0, 1, "test 2 of 2: wrong answer")),
    "share": (sample("print(3)", SUM, score="share"), (0.5, 1, "test 2 of 2: wrong answer")),
    "weighted": (sample("print(3)", SUM, score="weighted"), (0.05, 1, "wrong answer")),
    "all of weighted": (sample(ADD, SUM, score="weighted"), (1.0, 2, "")),
    "runtime error": (sample("1/0", SUM), (0.0, 0, "test 1 of 2: runtime error")),
    "exit status": (sample(f"{ADD}\nexit(3)", SUM), (0.0, 0, "runtime error")),
    "compile error": (sample("print(", SUM), (0.0, 0, "compile error")),
    "no code": ({**sample("", SUM), "solution_str": "I cannot."}, (0.0, 0, "no code")),
    "CPU limit": (
        sample("while True: pass", SUM, time_limit=0.2),  # expires
        (0.0, 0, "test 1 of 2: time limit"),
    ),
    "asleep": (
        sample("import time; time.sleep(3600)", SUM, time_limit=0.1),  # expires
        (0.0, 0, "time limit"),
    ),
    "output limit": (sample("print('x' * (17 << 20))", ONE), (0.0, 0, "output limit")),
    "memory limit": (sample("x = bytearray(b'1') * (200 << 20)", ONE, memory_mb=64), (0.0, 0, "memory limit")),
    "calls": (
        sample("def f(a, b): return a + b", {"inputs": ["1\n2"], "outputs": ["3"], "fn_name": "f"}),
        (1.0, 1, ""),
    ),
    "calls of a method": (
        sample(
            "class Solution:\n    def f(self, a): return (a, a)",
            {"inputs": [[1]], "outputs": [[[1, 1]]], "fn_name": "f"},
        ),
        (1.0, 1, ""),
    ),
    "keys that are numbers": (
        sample("def f(d): return d[1]", {"inputs": [[{"1": 5}]], "outputs": [5], "fn_name": "f"}),
        (1.0, 1, ""),
    ),
    "integers of many digits": (
        sample("print(10 ** int(input()))", {"inputs": ["5000"], "outputs": [POWER]}),
        (1.0, 1, ""),
    ),
    "a call with integers of many digits": (
        sample("def f(n): return n * 2", {"inputs": [POWER], "outputs": ["2" + POWER[1:]], "fn_name": "f"}),
        (1.0, 1, ""),
    ),
    "asserts with integers of many digits": (
        sample("def f(n): return str(10 ** n)", ["assert f(5000) == str(10 ** 5000)"]),
        (1.0, 1, ""),
    ),
    "a call that returns no data": (
        sample("def f(a): return object()", {"inputs": ["1"], "outputs": ["1"], "fn_name": "f"}),
        (0.0, 0, "runtime error"),
    ),
    "no such function": (
        sample("def g(a): return a", {"inputs": ["1"], "outputs": ["1"], "fn_name": "f"}),
        (0.0, 0, "no such function"),
    ),
    "asserts": (
        sample("def f(x): return x + 1", ASSERTS, score="share"),
        (0.75, 3, "test 3 of 4: the test failed"),
    ),
    "a test that fails before the first call": (
        sample("def f(x): return x + 1", ["assert 1 == 2", *ASSERTS], score="share"),
        (0.6, 3, "test 1 of 5: the test failed"),
    ),
    "a program that names its function like a test": (
        sample(
            "def f(x): return x\ndef test_two(): pass",
            "def test_one(): assert f(1) == 1\ndef test_two(): assert f(2) == 9",
        ),
        (0.0, 0, "the test failed"),
    ),
    "test functions of one name": (
        sample(
            "def f(x): return x",
            ["def test(): pass\ndef test_it(): assert f(1) == 1", "def test_it(): assert f(2) == 9"],
        ),
        (0.0, 1, "test 2 of 2"),
    ),
    "a call with its output under the singular name": (
        sample("def f(x): pass", {"fn_name": "f", "test_cases": [{"inputs": [1], "output": 2}]}),
        (0.0, 0, "wrong answer"),
    ),
    "a function named like a built-in one": (
        sample("def sum(a, b): return a + b", ["assert sum(1, 2) == 3"]),
        (1.0, 1, ""),
    ),
    "a function named like a built-in one, imported": (
        sample("def sum(a, b): return a + b", "from solution import sum\ndef test_sum(): assert sum(1, 2) == 3"),
        (1.0, 1, ""),
    ),
    "test functions and classes that the tests run themselves": (
        sample(
            "def f(x): return x",
            "import asyncio\ndef test_value(x): assert f(x) == x\nasync def test_later(): assert f(3) == 3\n"
            "class TestF:\n    def test_it(self): assert f(2) == 2\n"
            "test_value(1)\nTestF().test_it()\nasyncio.run(test_later())",
        ),
        (1.0, 1, ""),
    ),
    "built-in names beside an import of the program": (
        sample(
            "def f(x): return 0\ndef all(x): return True",
            "import solution as s\nfrom solution import f as g\n"
            "def test_f(): assert all(g(x) == s.f(x) == y for x, y in [(1, 2), (2, 3)])",
        ),
        (0.0, 0, "the test failed"),
    ),
    "built-in names beside a star import": (
        sample(
            "def f(x): return 0\ndef all(x): return True",
            "from solution import *\ndef test_f(): assert all(f(x) == y for x, y in [(1, 2), (2, 3)])",
        ),
        (0.0, 0, "the test failed"),
    ),
    "built-in names beside an import of the program by its name": (
        sample(
            "def f(x): return 0\ndef all(x): return True",
            "import importlib\nm = importlib.import_module('solution')\n"
            "def test_f(): assert all(m.f(x) == y for x, y in [(1, 2), (2, 3)])",
        ),
        (0.0, 0, "the test failed"),
    ),
    "modules beside an import of the program": (
        sample(
            "def f(x): return 0\nclass math: isclose = lambda *a: True",
            "import solution\ndef test_f(): assert math.isclose(solution.f(1), 2)",
        ),
        (0.0, 0, "the test failed"),
    ),
    "a built-in name instead of the function": (
        sample("def all(x): return True", ["assert all(f(x) == y for x, y in [(1, 2), (2, 3)])"]),
        (0.0, 0, "the test failed"),
    ),
    "two built-in names, of which the entry point is tested": (
        sample(
            "def sum(x): return 0\ndef all(x): return True",
            {"test_list": ["assert all(sum(x) == 5 for x in [(1, 2)])"], "entry_point": "sum"},
        ),
        (0.0, 0, "the test failed"),
    ),
    "a usual name that nobody imports": (
        sample("def half(n): return n / 2", ["assert isclose(half(3), 1.5)"]),
        (1.0, 1, ""),
    ),
    "a usual name that the program replaces": (
        sample("def isclose(*a): return True\ndef half(n): return 0", ["assert isclose(half(3), 1.5)"]),
        (0.0, 0, "the test failed"),
    ),
    "a usual class that the program replaces": (
        sample("def deque(x): return 7\ndef f(x): return x", ["assert deque(f([1, 2])) == deque([2, 1])"]),
        (0.0, 0, "the test failed"),
    ),
    "a class of the module decimal that the program replaces": (
        sample("def Decimal(x): return 7\ndef f(): return 7", ["assert f() == Decimal('0.1')"]),
        (0.0, 0, "the test failed"),
    ),
    "a usual name beside a star import": (
        sample(
            "def Counter(x): return 1\ndef f(s): return 0",
            ["from solution import *\nassert Counter(f('aab')) == Counter('aab')"],
        ),
        (0.0, 0, "the test failed"),
    ),
    "a name that the tests import before a star import": (
        sample(
            "def fsum_of(x): return 2\ndef f(x): return 0",
            ["from math import fsum as fsum_of\nfrom solution import *\nassert fsum_of([f(1)]) == 2"],
        ),
        (0.0, 0, "the test failed"),
    ),
    "a module that nobody imports": (
        sample("def f(): return 'a/b'", ["assert os.path.basename(f()) == 'b'"]),
        (1.0, 1, ""),
    ),
    "a module that the program replaces": (
        sample("class html: escape = lambda x: 1\ndef f(): return 0", ["assert html.escape(f()) == 1"]),
        (0.0, 0, "the test failed"),
    ),
    "a function named like a module": (
        sample("def queue(x): return [x]", ["assert queue(1) == [1]"]),
        (1.0, 1, ""),
    ),
    "a name from a star import in the setup": (
        sample(
            "def dedent(x): return 'x'\ndef f(): return ' x'",
            {
                "test_list": ["assert dedent(f()) == 'x'", "assert f() == ' x'"],
                "test_setup_code": "from textwrap import *",
            },
        ),
        (1.0, 2, ""),
    ),
    "a name from a star import in the setup that the program replaces": (
        sample(
            "def dedent(x): return 'x'\ndef f(): return 0",
            {"test_list": ["assert dedent(f()) == 'x'"], "test_setup_code": "from textwrap import *"},
        ),
        (0.0, 0, "the test failed"),
    ),
    "a parameter named like the tested function": (
        sample("def abs(x): return 2\ndef f(x): return 0", ["def check(f): assert abs(f(1)) == 2\ncheck(f)"]),
        (0.0, 0, "the test failed"),
    ),
    "built-in names that the program sends itself": (
        sample(BUILTINS, ["assert abs(half(3) - 1.5) < 1e-6"]),
        (0.0, 0, "test 1 of 1"),
    ),
    "a function named like a usual one": (
        sample("def add(a, b): return [a, b]", ["assert add(1, 2) == list((1, 2))"]),
        (1.0, 1, ""),
    ),
    "a function that the tests use without saying so": (
        sample("def f(x): return x + 1", ["assert isclose(f(1), 2)", "assert add(f(1), 1) == len('abc')"]),
        (1.0, 2, ""),
    ),
    "a function named like a usual one, beside a module": (
        sample("def sqrt(x): return 3", ["assert math.isclose(sqrt(2), 3)"]),
        (1.0, 1, ""),
    ),
    "a function named like a usual one, which the program lacks": (
        sample("def sub(a, b): return a - b", ["assert add(1, 2) == 3"]),
        (0.0, 0, "the test failed"),
    ),
    "StopIteration": (
        sample("def f(x): raise StopIteration", ["assert all(map(lambda t: f(t[0]) == t[1], [(1, 2)]))"]),
        (0.0, 0, "the test failed"),
    ),
    "a class derived from StopIteration": (
        sample(
            "class E(StopIteration): pass\ndef f(x): raise E",
            ["assert not [*filter(lambda t: f(t[0]) != t[1], [(1, 2)])]"],
        ),
        (0.0, 0, "the test failed"),
    ),
    "the end of an iterator": (
        sample(
            "def f(n): return iter(Count(n))\nclass Count:\n    def __init__(self, n): self.n = n\n"
            "    def __iter__(self): return self\n    def __next__(self):\n        self.n -= 1\n"
            "        if self.n < 0: raise StopIteration\n        return self.n",
            ["assert [*f(2)] == [1, 0]\ntry: next(f(0))\nexcept StopIteration: pass\nelse: assert False"],
        ),
        (1.0, 1, ""),
    ),
    "an import in a string": (
        sample("def f(x): return x", {"test_list": ["assert f(math.pi) > 3"], "test_imports": "import math"}),
        (1.0, 1, ""),
    ),
    "an assert in the setup": (
        sample(
            "def f(x): return x", {"test_list": ["same(f(1), 1)"], "test_setup_code": "def same(a, b): assert a == b"}
        ),
        (1.0, 1, ""),
    ),
    "a separator of lines in a string": (
        sample("def f(x): return 'a\u2028b'", ["assert f(1) == 'a\u2028b'"]),
        (1.0, 1, ""),
    ),
    "objects, callbacks, exceptions": (sample(TREE, TREE_TESTS, score="share"), (1.0, len(TREE_TESTS), "")),
    "HumanEval": (
        sample("def f(x): return x", {"test": "def check(c):\n    assert c(1) == 1", "entry_point": "f"}),
        (1.0, 1, ""),
    ),
    "LeetCodeDataset": (
        sample(
            "class Solution:\n    def f(self, operation, target): return target(self=operation)",
            {
                "test": "def check(c):\n    assert c(operation=1, target=lambda self: self) == 1",
                "entry_point": "Solution().f",
            },
        ),
        (1.0, 1, ""),
    ),
    "HumanEval with the prompt as setup": (
        sample(
            "def f(s): return s[1:]",
            {
                "test": "def check(candidate):\n    assert candidate(g('a')) == 'a'",
                "test_setup_code": "def g(s): return 'x' + s\ndef f(s):\n    'Undo g.'",
                "entry_point": "f",
            },
        ),
        (1.0, 1, ""),
    ),
    "an entry point that only the setup defines": (
        sample(
            "def g(x): return x",
            {"test": "def check(f): assert f(1) == 1", "test_setup_code": "def f(x): return x", "entry_point": "f"},
        ),
        (0.0, 0, "the test failed"),
    ),
    "an import in the setup that the program lacks": (
        sample("def g(x): return x", {"test": "assert f(1) == 1", "test_imports": ["from solution import f"]}),
        (0.0, 0, "the test failed"),
    ),
    "a suite that dies half-way": (
        sample("import os\ndef f(x): return x + 1 if x < 2 else os._exit(0)", ASSERTS, score="share"),
        (0.25, 1, "test 2 of 4"),
    ),
    "a suite that loops": (
        sample("def f(x):\n    while 1: pass", ASSERTS, time_limit=0.2),  # expires
        (0.0, 0, "time limit"),
    ),
    "a suite that sleeps": (
        sample("import time\ndef f(x): time.sleep(3600)", ASSERTS, time_limit=0.1),  # expires
        (0.0, 0, "time limit"),
    ),
    "the first cases of many": (
        sample("print(len(input()))", {"inputs": ["1", "22"], "outputs": ["7", "2"]}, max_tests=1),
        (1.0, 1, ""),
    ),
}
UNSCORED: dict[str, tuple[dict[str, Any], str]] = {
    "no tests": (sample(ADD, {"inputs": [], "outputs": []}), "there are no tests"),
    "no reference": (sample(ADD, None), "missing"),
    "an interactive problem": (sample(ADD, {**SUM, "interactor": "x"}), "interactive"),
    "a flag in place of a checker": (sample(ADD, {**SUM, "special_judge": True}), "special_judge"),
    "a checker of calls": (sample(ADD, {**ONE, "fn_name": "f", "checker": "print(1)"}), "standard input"),
    "an unknown option": (sample(ADD, SUM, score="best"), "extra_info.score"),
    "another language": (sample(ADD, SUM, language="cobol"), "extra_info.language"),
    "tests that are no Python": (sample("def f(x): return x", ["assert f(1 == 1"]), "not a Python program"),
    "a library that tests lack": (
        sample("def f(x): return x", ["import no_such_module\nassert f(1)"]),
        "no_such_module",
    ),
    "a class of tests beside a test": (
        sample(
            "def f(x): return 2", "def test_a(): assert f(1) == 2\nclass TestF:\n    def test_b(self): assert f(2) == 3"
        ),
        "test classes are not supported",
    ),
    "a class of unittest beside a test": (
        sample(
            "def f(x): return 2",
            "import unittest\ndef test_a(): assert f(1) == 2\n"
            "class Cases(unittest.TestCase):\n    def test_b(self): assert f(2) == 3",
        ),
        "test classes are not supported",
    ),
    "a coroutine beside a test": (
        sample("def f(x): return 2", "def test_a(): assert f(1) == 2\nasync def test_b(): assert f(2) == 3"),
        "coroutines and generators are not supported",
    ),
    "a generator beside a test": (
        sample("def f(x): return 2", "def test_a(): assert f(1) == 2\ndef test_b():\n    yield\n    assert f(2) == 3"),
        "coroutines and generators are not supported",
    ),
    "a test with a fixture": (
        sample("def f(x): return x", "def one(): return 1\ndef test_f(one): assert f(one) == 1"),
        "fixtures and marks are not supported",
    ),
    "a test with a mark": (
        sample(
            "def f(x): return x",
            "def mark(f):\n    f.pytestmark = []\n    return f\n@mark\ndef test_f(): assert f(1) == 1",
        ),
        "fixtures and marks are not supported",
    ),
    "a function that tests lack beside an entry point": (
        sample(
            "def enc(s): return s\ndef dec(s): return s",
            {"test": "def check(c):\n    assert c(enc('a')) == 'a'", "entry_point": "dec"},
        ),
        "define it in `test_setup_code`",
    ),
    "a function that LeetCodeDataset's tests lack": (
        sample(
            "def same(a, b): return True\nclass Solution:\n    def f(self, x): return 0",
            {"test": "def check(c):\n    assert same(c(1), [1])", "entry_point": "Solution().f"},
        ),
        "the tests use `same`",
    ),
    "two built-in names, of which one may be tested": (
        sample("def sum(x): return 0\ndef all(x): return True", ["assert all(sum(x) == 5 for x in [(1, 2)])"]),
        "so `entry_point` has to",
    ),
    "two usual names, of which one may be tested": (
        sample("def isclose(*a): return True", ["assert isclose(sqrt(4), 3)"]),
        "so `entry_point` has to",
    ),
    "tests that call nothing": (sample("def f(x): return x", ["assert 1 == 1"]), "without calling"),
    "a library that tests lack after they have called the program": (
        sample("def f(x): return 0", ["r = f(1)\nimport no_such_library\nassert r == 2"]),
        "no_such_library",
    ),
    "a function that tests lack in a comparison": (
        sample(
            "def f(xs): return 0",
            {"test": "def check(c):\n    found = c([1])\n    assert abs(poly([1], found)) < 1", "entry_point": "f"},
        ),
        "the tests use `poly`",
    ),
    "tests that pass without a program": (
        sample("def g(x): return x", ["assert 'f' not in globals() or f(1) == 1"]),
        "without calling",
    ),
    "tests that loop by themselves": (
        sample("def f(x): return x", ["while True: assert True"], time_limit=1),  # expires
        "without calling",
    ),
}

FAULTS = {
    "a fraction whose text takes the tester's time": (
        "import fractions\nclass Fraction(fractions.Fraction):\n"
        "    def __str__(self): return '1e99999999'\nf = Fraction(1)"
    ),
    "numbers of one hash": (
        "class Int(int):\n    def __hash__(self): return id(self)\nf = {Int(k * (2**61 - 1)) for k in range(1 << 16)}"
    ),
    "a module that tests import": "NAME = 'no_such_module'",
    "deep values": "f = []\nfor _ in range(50): f = [f]",
    "nothing": "",
    "no names": "import os\nos._exit(0)",
    "an exception of a library": "def f(x): raise ImportError('no numpy', name='numpy')",
    "an exception of a name": "def f(x): raise NameError('helper', name='helper')",
    "an endless iterator": "def f(x):\n    while True: yield x",
    "a value in place of a function": "f = 3",
    "an object of its own": "class f:\n    def __getattr__(self, name): raise ImportError(name)",
}
"""Programs of which none passes a test, whatever they do to the process that tests them."""
FAULTLESS_TESTS = (
    {"test_setup_code": "from solution import *", "test_list": ["assert f(1) == 2"]},
    {"test_setup_code": "from solution import f, helper", "test_list": ["assert f(1) == 2"]},
    {"test_setup_code": "import solution", "test_list": ["assert list(solution.f(1)) == [2]"]},
    {"test_setup_code": "from solution import *", "test": "def check(c): assert c(1) == 2", "entry_point": "f"},
    {"test_setup_code": "import solution\n__import__(solution.NAME)", "test_list": ["assert solution.f(1) == 2"]},
    ["assert list(f(1)) == [2]", "assert f in {1, 2}"],
)


def test_whose_fault(server: RewardServer, table: Table) -> None:
    """Once tests have read anything of a program, what it does to them is its own fault: 0, never unscored."""
    cases = [(name, source, tests) for name, source in FAULTS.items() for tests in FAULTLESS_TESTS]
    items = [sample(source, tests, time_limit=0.3) for _, source, tests in cases]  # expires
    for (name, _, tests), score in zip(cases, server.score(*items), strict=True):
        with table.case(f"{name}: {tests}"):
            assert (score["status"], score["value"]) == ("ok", 0.0), score


def test_functions_of_libraries(server: RewardServer) -> None:
    """A program may pass a library's function off as its own, which the tests then call without the program."""
    [score] = server.score(sample("from math import gcd as f", ["assert f(4, 6) == 2"]))
    assert (score["status"], score["value"]) == ("ok", 1.0), score


def test_scores(server: RewardServer, table: Table) -> None:
    """Each program has its value, its tests that passed, and a reason that names the first that did not."""
    scores = server.score(*(item for item, _ in CASES.values()))
    for (name, (_, (value, passed, reason))), score in zip(CASES.items(), scores, strict=True):
        with table.case(name):
            assert (score["status"], round(score["value"], 9)) == ("ok", value), score
            assert score["details"]["parts"]["passed"] == passed
            assert reason in score["reason"]
            assert reason or not score["reason"]


def test_unscored(server: RewardServer, table: Table) -> None:
    """What nobody could score is unscored, and says why."""
    scores = server.score(*(item for item, _ in UNSCORED.values()))
    for (name, (_, reason)), score in zip(UNSCORED.items(), scores, strict=True):
        with table.case(name):
            assert (score["status"], score["value"]) == ("unscored", 0.0)
            assert reason in score["reason"]


def test_cache(server: RewardServer) -> None:
    """Verdicts are cached under program, tests and options; those of a limit are not."""
    wrong, slow = sample("print(1)", SUM), sample("while True: pass", SUM, time_limit=0.1)  # expires
    server.score(wrong, slow)
    again = server.score(wrong, slow, sample("print(1)", SUM, compare="exact"), sample("print(1)", ONE))
    assert [one["cached"] for one in again] == [True, False, False, False]


def test_routes(server: RewardServer, table: Table) -> None:
    """verl's sources of programs lead here."""
    for source in ("codecontests", "apps", "codeforces", "taco", "livecodebench", "rule_remote_code"):
        with table.case(source):
            assert server.score({**sample(ADD, SUM), "data_source": source})[0]["value"] == 1.0


def test_nemo_gym(server: RewardServer) -> None:
    """NeMo Gym's `verifier_metadata.unit_tests` are the tests."""
    content = [{"type": "output_text", "text": f"```python\n{ADD}\n```"}]
    body = {
        "reward_type": "code",
        "responses_create_params": {"input": "add"},
        "response": {"output": [{"type": "message", "content": content}]},
        "verifier_metadata": {"unit_tests": SUM},
    }
    assert server.post("/verify", body).json()["reward"] == 1.0


def test_the_page(server: RewardServer) -> None:
    """The request of docs/code.md gets what the page says."""
    body = block("docs/code.md", "bash", "curl").partition("-d '")[2].rpartition("'")[0]
    score = server.post("/v1/score", json.loads(body)).json()["scores"][0]
    said = (ROOT / "docs" / "code.md").read_text()
    assert score["value"] == 0.5 and "The value is 0.5" in said
    assert json.dumps(score["details"]["parts"]) in said and f"`{score['reason']}`" in said
    assert "run_reward_server" in block("docs/code.md", "bash", "CODE=on")


def test_explain(server: RewardServer) -> None:
    """An explanation shows the program and how many tests there are, and none of them."""
    reply = server.post("/v1/explain", sample(ADD, {"inputs": ["s3cret"], "outputs": ["0"]})).json()
    assert "'tests': 1" in str(reply) and ADD in str(reply)
    assert "s3cret" not in str(reply)


def test_metrics(server: RewardServer) -> None:
    """Tests are counted by verdict, and the processes that run them."""
    server.score(sample("print(7)", ONE))
    text = server.get("/metrics").text
    for name in ('tests_total{verdict="wrong answer"}', "cpu_seconds_total", "processes", "waiting"):
        assert f"rewardstack_code_{name}" in text


def test_off(start: Callable[..., RewardServer]) -> None:
    """Without CODE=on every source of programs is refused by the setting's name."""
    server = start("--workers", "1")
    for source in ("code", "taco"):
        reply = server.post("/v1/score", {"items": [{**sample(ADD, SUM), "data_source": source}]})
        assert reply.status_code == 400
        assert "CODE=on" in reply.json()["error"] and reply.json()["field"] == "CODE"


def test_client_of_a_server_that_is_off(start: Callable[..., RewardServer], monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of a server with CODE=off gets a ConfigError that names the setting, not failed samples."""
    monkeypatch.setenv("REWARD_SERVER_URL", start(CODE="off").url)
    with pytest.raises(ConfigError, match="CODE=on"):
        rewardstack.score([Request("code", f"```python\n{ADD}\n```", SUM)] * 2)
