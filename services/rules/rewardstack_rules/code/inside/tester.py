"""Code of a tester's process: run test programs, and forward their calls to the candidate's process.

The candidate is the policy's program. Expected values, comparisons and results stay in the tester, which writes a
report with one byte for each test: `1` if the test passes, else `0`. If the tests are invalid, the report ends with `U`
and a reason. Whether they are is decided by `check`, without a candidate: in a run with one, whatever goes wrong is the
candidate's fault, because it may have caused it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import json
import os
import symtable
import sys
from collections import deque
from collections.abc import Callable, Iterator
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from rewardstack_rules.code.inside.programs import MORE_STARS, STARS, lift_limits, preamble, read
from rewardstack_rules.code.inside.values import (
    LIBRARIES,
    MODULES,
    Channel,
    ValueFormatError,
    decode,
    encode,
    exception,
)

NAME = "tests"
SOLUTION = "solution"
"""Name under which tests may import the candidate."""
TEST_STARS = (*STARS, *MORE_STARS, "decimal", "fractions")
NAMES = preamble(TEST_STARS)
"""Names that tests can use without importing them, besides built-in ones and `UsedNames.libraries`."""
FUNCTIONS = {
    name for name, value in preamble([one for one in TEST_STARS if one != "typing"]).items() if callable(value)
}
"""Names of functions and classes in `NAMES`. A problem may ask for a function of such a name, such as `add`."""
KNOWN = {*vars(builtins), *NAMES}
MUTABLE = (list, dict, set, bytearray, deque)
REASON_CHARACTERS = 200
REMEDY = "write functions test_... without parameters"
MAX_STUB_USES = 1000
"""Maximum number of operations on stubs; more may be a loop that no stub ends."""
STUB_RESULTS = {"len": 0, "iter": (), "str": "", "repr": "", "bool": True, "int": 0, "float": 0.0, "isinstance": True}
"""Results of operations on stubs that need a plain value."""
RETURNS_EARLY = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
"""Flags of coroutines and generators: calling one returns before its code runs."""


def test(fds: list[int], options: dict[str, Any]) -> NoReturn:
    """Run a suite of test programs, write the report, and end the process.

    Args:
        fds: descriptors of the suite (JSON of `setup`, `tests` and `entry`), the report, and the socket to the
            candidate.
        options: unused.
    """
    suite = Suite(fds)
    names = Session(Channel(fds[2])).names(suite.used)
    for error in suite.run(names):
        suite.report.result(error is None)
    os._exit(0)


def check(fds: list[int], options: dict[str, Any]) -> NoReturn:
    """Find out whether a suite can be scored, write the report, and end the process.

    The suite is run twice: against nothing, and against stubs in place of what it tests. A `c` in the report marks the
    first use of a stub.

    Args:
        fds: descriptors of the suite, as for `test`, and of the report.
        options: unused.
    """
    suite = Suite(fds)
    used, report = suite.used, suite.report
    if used.tested <= KNOWN and len(used.tested) > 1:
        found = ", ".join(sorted(used.tested))
        report.unscored(f"the tests do not say which of these names they test, so `entry_point` has to: {found}")
    without = _errors_without_program(suite, {})
    session = StubSession(report)
    with_stubs = _errors_without_program(suite, session.names(used))
    if all(error is None for error in without) or (not session.is_used and None in with_stubs):
        report.unscored("the tests pass without calling the program")
    os._exit(0)


def _errors_without_program(suite: Suite, names: dict[str, Any]) -> list[BaseException | None]:
    """Run a suite; return what ended each test. If the cause is a fault of the tests, end the process."""
    ended = []
    for error in suite.run(names):
        if reason := _fault_of_tests(suite.used, error):
            suite.report.unscored(reason)
        ended.append(error)
    return ended


def _fault_of_tests(used: UsedNames, error: BaseException | None) -> str:
    """Return why tests that end with an error, without a program, can never pass; empty if this is not known."""
    if isinstance(error, ImportError) and error.name != SOLUTION:
        return f"the tests: {error}"
    if isinstance(error, NameError) and error.name in used.missing:
        return f"the tests use `{error.name}`, which they do not define; define it in `test_setup_code`"
    return ""


class Suite:
    """Test programs, and the report on them.

    Args:
        fds: descriptors of the suite (JSON of `setup`, `tests` and `entry`), and of the report.
    """

    def __init__(self, fds: list[int]) -> None:
        suite = json.loads(read(fds[0]))
        self.report = Report(fds[1])
        programs = [suite["setup"], *suite["tests"]]
        try:
            self._codes = [compile(program, f"{NAME}.py", "exec", dont_inherit=True) for program in programs]
            self.used = UsedNames(programs, suite["entry"])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.report.unscored("the tests are not a Python program")

    def run(self, program: dict[str, Any]) -> Iterator[BaseException | None]:
        """Run each test program; yield the exception that ended it, or None if it passes.

        If the setup fails, only its exception is yielded: every test fails.

        Args:
            program: the global names that the tests get from the program, besides `NAMES` and libraries.
        """
        lift_limits()
        names = {name: value for name, value in NAMES.items() if name not in self.used.tested} | program
        try:
            names |= {name: importlib.import_module(module) for name, module in self.used.libraries.items()}
        except ImportError as missing:
            yield missing
            return
        names |= {"__name__": NAME, "__builtins__": builtins}
        entry = {name: names[name] for name in {self.used.entry} & names.keys()}
        if (error := _error_of(exec, self._codes[0], names)) is not None:
            yield error
            return
        names.pop(self.used.entry, None)  # the setup may define it, too, as HumanEval's prompt does
        names.update(entry)
        for code in self._codes[1:]:
            yield _error_of(_run, code, names, self.used, self.report)


class UsedNames:
    """The global names in test programs.

    Args:
        programs: the sources of the test programs, and of the code that runs before them.
        entry: the function that they test, as NAME or CLASS().METHOD; empty if they name it themselves.
    """

    def __init__(self, programs: list[str], entry: str) -> None:
        self.read: set[str] = set()
        self.bound: set[str] = set()
        """Names that the test programs define themselves."""
        self.modules: set[str] = set()
        """Modules that the test programs import, except by `from MODULE import *`."""
        self._qualifiers: set[str] = set()
        """Names before a dot."""
        for program in programs:
            self._add_names(symtable.symtable(program, f"{NAME}.py", "exec"))
            for node in ast.walk(ast.parse(program)):
                self._add_node(node)
        libraries = (self.read - self.bound - KNOWN) & self._qualifiers & {*LIBRARIES, *sys.stdlib_module_names}
        self.libraries = {name: LIBRARIES.get(name, name) for name in libraries}
        """Modules that the tests use without an import, as in `np.zeros(2)`, by name."""
        free = self.read - self.bound - libraries
        name = entry.partition("()")[0]
        self.entry = name if name in self.read else ""
        """Name of the function or class that they test; empty if there is no entry point or they do not use it."""
        self.tested = {self.entry} if self.entry else self._tested(free)
        """Names that the program has to define."""
        self.missing = free - self.tested - KNOWN
        """Names that nobody defines, except for those that come from `from MODULE import *`."""

    def _add_names(self, table: symtable.SymbolTable) -> None:
        is_module = table.get_type() == "module"
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if name[:2] == "__" or not (is_module or symbol.is_global()):
                continue
            if symbol.is_referenced():
                self.read.add(name)
            if symbol.is_assigned() or symbol.is_imported():
                self.bound.add(name)
        for child in table.get_children():
            self._add_names(child)

    def _add_node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            self._qualifiers.add(node.value.id)
        elif isinstance(node, ast.Import):
            self.modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.names[0].name != "*":
            self.modules.add(node.module or "")
        elif isinstance(node, ast.Constant) and node.value == SOLUTION:  # importlib.import_module("solution")
            self.modules.add(SOLUTION)

    def _tested(self, free: set[str]) -> set[str]:
        """Return those of the names `free` that the program has to define: all that are not in `KNOWN`.

        If all are in `KNOWN`, as in `assert sum(1, 2) == 3`, and the tests do not import the program, return the names
        that can be the tested one. What the program defines does not matter here: it could replace a function with
        which the tests check its results.
        """
        unknown = free - KNOWN
        if unknown or SOLUTION in self.modules:
            return unknown
        return free & FUNCTIONS or free & vars(builtins).keys() or free


def _error_of(function: Callable[..., None], *arguments: Any) -> BaseException | None:
    """Call a function that runs code of the tests; return the exception that it raises, or None."""
    try:
        function(*arguments)
        return None
    except BaseException as error:  # the test fails
        return error


def _run(code: Any, names: dict[str, Any], used: UsedNames, report: Report) -> None:
    """Run a test program and the `test_…` functions that it defines."""
    before = dict(names)
    exec(code, names)
    added = {name: value for name, value in names.items() if value is not before.get(name)}
    not_run = {name: reason for name, value in added.items() if (reason := _why_not_run(name, value))}
    for name in sorted(not_run.keys() - used.read):  # no test program uses this name, so none runs it itself
        report.unscored(not_run[name])
    for name, value in added.items():
        if name not in not_run and name.startswith("test_") and callable(value) and not isinstance(value, Proxy):
            value()


def _why_not_run(name: str, value: Any) -> str:
    """Return why a name that a test program defines is not run as a test; empty if it is run, or is not a test."""
    if isinstance(value, type) and value.__module__ == NAME:
        kinds = [(base.__module__.partition(".")[0], base.__name__) for base in value.__mro__]
        has_tests = name.startswith("Test") and any(one.startswith("test_") for one in dir(value))
        is_run = not has_tests and ("unittest", "TestCase") not in kinds
        return "" if is_run else f"test classes are not supported; {REMEDY}"
    if not name.startswith("test_") or not isinstance(value, FunctionType):
        return ""
    code = value.__code__
    if code.co_flags & RETURNS_EARLY:
        return f"coroutines and generators are not supported as tests; {REMEDY}"
    parameters = code.co_argcount + code.co_kwonlyargcount
    optional = len(value.__defaults__ or ()) + len(value.__kwdefaults__ or ())
    needs_pytest = parameters > optional or hasattr(value, "pytestmark")
    return f"pytest fixtures and marks are not supported; {REMEDY}" if needs_pytest else ""


class Report:
    """Writes the report, in the format that the module's docstring describes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def used(self) -> None:
        """Record that the tests use what they test."""
        os.write(self._fd, b"c")

    def result(self, holds: bool) -> None:
        """Record whether a test passed."""
        os.write(self._fd, b"1" if holds else b"0")

    def unscored(self, reason: str) -> NoReturn:
        """Record that the tests are invalid, and end the process."""
        os.write(self._fd, b"U" + reason[:REASON_CHARACTERS].encode("ascii", "replace"))
        os._exit(0)


class RemoteStop(BaseException):
    """The candidate's process ended or broke the protocol; tests cannot catch this as an `Exception`."""


class Session:
    """The tester's end of the socket to the candidate."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._callbacks: list[Any] = []
        self._exceptions: dict[str, type[Exception]] = {}
        self._is_over = False

    def names(self, used: UsedNames) -> dict[str, Any]:
        """Return the names that the tests get from the candidate.

        These are only the entry point. If there is none, they are the tested names and all that are not in `KNOWN`.

        Args:
            used: the names in the setup and in the test programs.
        """
        introduced = self._introduction()
        public = introduced.keys() & used.tested
        if not used.entry:
            public |= introduced.keys() - KNOWN - used.libraries.keys()
        values = {}
        for name in introduced if SOLUTION in used.modules else public:
            with contextlib.suppress(ValueFormatError):
                values[name] = self._decode(introduced[name])
        _offer_module(values, public - used.bound)
        return {name: values[name] for name in public & values.keys()}

    def _introduction(self) -> dict[str, Any]:
        try:
            introduced = self._channel.receive()["names"]
            return {name: value for name, value in introduced.items() if name.isidentifier() and name[:2] != "__"}
        except (EOFError, OSError, ValueFormatError, TypeError, KeyError, AttributeError):
            os._exit(1)  # the program did not load

    def _decode(self, value: Any) -> Any:
        return decode(value, self._stand_in)

    def _stand_in(self, tag: str, content: Any) -> Any:
        if tag == "callback":
            return self._callbacks[content]
        if tag == "module":
            if content in MODULES:
                return importlib.import_module(content)
            raise ValueFormatError(content)
        number, _, bases = content
        if tag == "exception":
            kinds = [getattr(builtins, base, None) for base in bases]
            base = next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception))
            return self._exceptions.setdefault(bases[0], type(bases[0], (base,), {}))
        if tag != "object" or type(number) is not int:
            raise ValueFormatError(tag)
        return Proxy(self, number)

    def _keep(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Proxy):
            return {"object": object.__getattribute__(value, "_number")}
        if isinstance(value, Iterator):
            raise TypeError("an iterator cannot be passed to the program")
        if not callable(value):
            raise TypeError(f"a {type(value).__name__} of the tests cannot be passed to the program")
        self._callbacks.append(value)
        return {"callback": len(self._callbacks) - 1}

    def do(self, operation: str, number: int, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run an operation on an object of the candidate; return its result, or raise its exception."""
        if self._is_over:
            raise RemoteStop
        arguments = [[*one] if isinstance(one, Iterator) and not isinstance(one, Proxy) else one for one in arguments]
        changes = any(isinstance(one, MUTABLE) for one in arguments)
        message = {"do": operation, "of": number, "changes": changes}
        message["args"] = [encode(one, self._keep) for one in arguments]
        message["kwargs"] = encode(keywords, self._keep)
        try:
            self._channel.send(message)
            while "call" in (reply := self._channel.receive()):
                self._channel.send({"returned": self._call_back(reply)})
            if "error" in reply:
                self._raise(reply, operation)
            if changes:
                for old, new in zip(arguments, self._decode(reply["args"]), strict=True):
                    _update(old, new)
            return self._decode(reply["result"])
        except (EOFError, OSError, ValueFormatError, TypeError, KeyError, ValueError) as error:
            if hasattr(error, "is_remote"):
                raise
            self._is_over = True
            raise RemoteStop from None

    def _call_back(self, message: dict[str, Any]) -> list[Any] | None:
        function, arguments = self._callbacks[message["call"]], self._decode(message["args"])
        keywords = self._decode(message["kwargs"])
        try:
            return [encode(function(*arguments, **keywords), self._keep)]
        except Exception:
            return None

    def _raise(self, reply: dict[str, Any], operation: str) -> NoReturn:
        """Raise the candidate's exception.

        A `StopIteration` that is not the end of an iterator would end the tests' own loops, so it becomes a
        `RuntimeError`, as in a generator (PEP 479).
        """
        name, text = str(reply["error"]), str(reply["text"])
        if name in self._exceptions:
            error = self._exceptions[name](text)
        else:
            error = exception(name, text, [*map(str, reply["bases"])])
        if isinstance(error, (StopIteration, StopAsyncIteration)) and operation != "next":
            error = RuntimeError(f"the program raised {name}")
        error.is_remote = True  # type: ignore[attr-defined]
        raise error


def _offer_module(values: dict[str, Any], public: set[str]) -> None:
    """Let tests import the program as `solution`; `from solution import *` imports only its `public` names."""
    module = ModuleType(SOLUTION)
    module.__dict__.update(values, __all__=sorted(public & values.keys()))
    sys.modules[SOLUTION] = module


def _update(old: Any, new: Any) -> None:
    """Copy the candidate's changes of a mutable argument into the tester's original."""
    if type(old) is not type(new) or not isinstance(old, MUTABLE):
        return
    if isinstance(old, (list, bytearray)):
        old[:] = new
    else:
        old.clear()
        old.extend(new) if isinstance(old, deque) else old.update(new)


class Proxy:
    """Represents an object of the candidate: forwards calls, attributes and items, but equals only itself.

    Comparisons and arithmetic are not forwarded, because a candidate could define operators that pass every test.
    """

    __slots__ = ("_number", "_session")

    def __init__(self, session: Session | StubSession, number: int) -> None:
        object.__setattr__(self, "_session", session)
        object.__setattr__(self, "_number", number)

    def _ask(self, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
        session = object.__getattribute__(self, "_session")
        return session.do(operation, object.__getattribute__(self, "_number"), [*arguments], keywords)

    def _ask_for(self, kind: type, operation: str, *arguments: Any) -> Any:
        value = Proxy._ask(self, operation, *arguments)
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}")
        return value

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        return Proxy._ask(self, "call", *arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Proxy._ask(self, "get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        Proxy._ask(self, "set", name, value)

    def __len__(self) -> int:
        return int(Proxy._ask_for(self, int, "len"))

    def __iter__(self) -> Iterator[Any]:
        iterator = Proxy._ask(self, "iter")
        return iter(iterator) if not isinstance(iterator, Proxy) else _Iterator(iterator)

    def __next__(self) -> Any:
        return Proxy._ask(self, "next")

    def __getitem__(self, key: Any) -> Any:
        return Proxy._ask(self, "item", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        Proxy._ask(self, "set_item", key, value)

    def __delitem__(self, key: Any) -> None:
        Proxy._ask(self, "del_item", key)

    def __str__(self) -> str:
        return str(Proxy._ask_for(self, str, "str"))

    def __repr__(self) -> str:
        return str(Proxy._ask_for(self, str, "repr"))

    def __bool__(self) -> bool:
        return bool(Proxy._ask_for(self, bool, "bool"))

    def __int__(self) -> int:
        return int(Proxy._ask_for(self, int, "int"))

    def __float__(self) -> float:
        return float(Proxy._ask_for(self, float, "float"))

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Proxy) and bool(Proxy._ask_for(self, bool, "isinstance", value))


class StubSession:
    """Answers in place of a candidate, for stubs of all that the tests use from it.

    Attributes:
        is_used: whether the tests have used a stub.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._uses = 0
        self._stub = Stub(self, 0)

    @property
    def is_used(self) -> bool:
        return self._uses > 0

    def names(self, used: UsedNames) -> dict[str, Any]:
        """Return a stub for each tested name, and offer the module `solution`, in which every name is a stub."""
        _offer_module(dict.fromkeys(used.tested, self._stub), used.tested - used.bound)
        sys.modules[SOLUTION].__getattr__ = self._attribute  # type: ignore[method-assign]
        return dict.fromkeys(used.tested, self._stub)

    def _attribute(self, name: str) -> Stub:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._stub

    def do(self, operation: str, number: int, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Return the result of an operation on a stub: another stub, unless the operation needs a plain value."""
        if not self.is_used:
            self._report.used()
        self._uses += 1
        if self._uses > MAX_STUB_USES:
            raise RemoteStop
        return STUB_RESULTS.get(operation, self._stub)


class Stub(Proxy):
    """Represents whatever the tests expect: every comparison with it holds."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __lt__(self, other: object) -> bool:
        return True

    __le__ = __gt__ = __ge__ = __contains__ = __lt__


class _Iterator:
    """Iterates over an object of the candidate."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._proxy.__next__()
