"""Code of a candidate's process: run the program on an input, call one of its functions, or serve a tester.

The candidate is the policy's program; a tester is the process that runs test programs against it.
"""

from __future__ import annotations

import atexit
import builtins
import io
import json
import linecache
import operator
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

from rewardstack_rules.code.inside.values import MODULES, Channel, decode, encode

FILE = "main.py"
EXIT_ERROR, EXIT_COMPILE, EXIT_NO_FUNCTION, EXIT_KILLED = 1, 65, 66, 67
KILLED_BY_SHELL = {128 + number for number in (signal.SIGKILL, signal.SIGTERM)}
"""Exit statuses of a shell whose last command was killed."""
RECURSION_LIMIT = 50_000
"""Python's recursion limit for programs; LiveCodeBench sets the same."""
MESSAGE_CHARACTERS = 200
STARS = ("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics")
MORE_STARS = ("itertools", "functools", "operator", "json", "typing")
"""Modules whose public names `preamble` imports, those of `STARS` first.

If two modules define the same name, programs get the definition of the later module.
"""
STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2, "/dev/fd/1": 1, "/dev/fd/2": 2}
Names = dict[str, Any]


def preamble(stars: Sequence[str] = (*STARS, *MORE_STARS)) -> Names:
    """Return the modules `MODULES` and the public names of the modules `stars`, without those of built-in objects.

    By default, these are the names that every program can use without importing them: those that LiveCodeBench imports.
    """
    names: Names = {}
    exec("".join(f"from {module} import *\n" for module in stars), names)
    exec("".join(f"import {module}\n" for module in MODULES), names)
    del names["__builtins__"]
    return {name: value for name, value in names.items() if not hasattr(builtins, name)}


PREAMBLE = preamble()
MODULE = ModuleType("__main__")
"""The program's module. It is filled before the fork; otherwise each process would copy hundreds of memory pages."""
MODULE.__dict__.update(PREAMBLE, __builtins__=builtins, __file__=FILE, __cached__=None, __annotations__={})


def replace_files() -> None:
    """Patch `open` to map names such as `/dev/stdout` to descriptors, and `tempfile` to keep its files in memory.

    Candidates cannot open files for writing, so without the patches, both would fail.
    """
    plain_open = io.open

    def with_streams(file: Any, *arguments: Any, **options: Any) -> Any:
        name = STREAMS.get(file) if isinstance(file, str) else None
        return plain_open(file if name is None else os.dup(name), *arguments, **options)

    builtins.open = io.open = with_streams

    def temporary(mode: str = "w+b", buffering: int = -1, encoding: Any = None, newline: Any = None, **_: Any) -> Any:
        file = io.BytesIO()
        return file if "b" in mode else io.TextIOWrapper(file, encoding or "utf-8", newline=newline)

    def spooled(max_size: int = 0, mode: str = "w+b", **options: Any) -> Any:
        return temporary(mode, **options)

    tempfile.TemporaryFile = tempfile.NamedTemporaryFile = temporary  # type: ignore[assignment]
    tempfile.SpooledTemporaryFile = spooled  # type: ignore[assignment,misc]


def replace_streams() -> None:
    """Replace standard input and output by new UTF-8 streams. Call this before forks, to save time in each process."""
    sys.stdin = sys.__stdin__ = _standard_stream(0, "r", "<stdin>")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _standard_stream(1, "w", "<stdout>")  # type: ignore[misc]


def _standard_stream(fd: int, mode: str, name: str) -> io.TextIOWrapper:
    """Return a stream with the attributes `mode` and `name` that the interpreter's own stream has."""
    stream = open(fd, mode, encoding="utf-8", errors="surrogateescape", closefd=False)
    stream.buffer.raw.name = name  # type: ignore[attr-defined]
    return stream  # type: ignore[return-value]


def read(fd: int) -> bytes:
    """Return the content of a memory file and close it; do not move its position, which other processes share."""
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    os.close(fd)
    return data


def lift_limits() -> None:
    """Raise Python's recursion limit and remove its limit on digits of integers; the CPU limit stops long runs."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    if hasattr(sys, "set_int_max_str_digits"):  # Python 3.10.7 and later
        sys.set_int_max_str_digits(0)


def load(source: bytes, name: str, arguments: Sequence[str] = ()) -> Names:
    """Run a program's source as a module and return its names; end the process if it does not compile."""
    try:
        text = source.decode("utf-8", "surrogatepass")
        code = compile(text, FILE, "exec", dont_inherit=True)
    except BaseException:  # SyntaxError, ValueError, RecursionError, MemoryError
        os._exit(EXIT_COMPILE)
    MODULE.__name__ = name
    sys.modules[name] = MODULE
    linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
    sys.argv = [FILE, *arguments]
    lift_limits()
    exec(code, MODULE.__dict__)
    return MODULE.__dict__


def _end(status: int) -> NoReturn:
    """End the process as the interpreter does: join threads, run `atexit` functions, flush the output."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:  # raised by the program's threads or exit functions
        status = status or EXIT_ERROR
    os._exit(status & 255)


def _status(ending: SystemExit) -> int:
    if ending.code is None:
        return 0
    return ending.code if isinstance(ending.code, int) else EXIT_ERROR


def connect(fds: list[int]) -> list[str]:
    """Make a program's input and output its standard streams; return the paths of its other files.

    Args:
        fds: descriptors of the program, its input, its output and the other files.
    """
    os.dup2(fds[1], 0)
    os.dup2(fds[2], 1)
    for fd in fds[1:3]:
        os.close(fd)
    return [f"/proc/self/fd/{fd}" for fd in fds[3:]]


def script(fds: list[int], options: Names) -> NoReturn:
    """Run a program.

    Args:
        fds: descriptors of the program's source, input and output, and of files whose paths are its arguments.
        options: unused.
    """
    source = read(fds[0])
    arguments = connect(fds)
    status = 0
    try:
        load(source, "__main__", arguments)
    except SystemExit as ending:
        status = _status(ending)
    except BaseException:  # raised by the program
        status = EXIT_ERROR
    _end(status)


def binary(fds: list[int], options: Names) -> NoReturn:
    """Become a compiled program.

    Args:
        fds: descriptors of the executable, its input and output, and of files whose paths are its arguments.
        options: unused.
    """
    arguments = connect(fds)
    os.set_inheritable(fds[0], False)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would inherit that
        signal.signal(number, signal.SIG_DFL)
    os.execve(fds[0], ["main", *arguments], os.environ)


def build(fds: list[int], options: Names) -> NoReturn:
    """Compile a program in the current folder.

    Args:
        fds: descriptors of the source, and of files for the compiler's messages and for the executable.
        options: `source`, the name of the source file, and `command`, the compiler with its arguments, which makes
            the executable `main`.

    The exit status is `EXIT_KILLED` if the compiler was killed. It is a GCC's own, or that of its last process
    (`languages.REPORT_SIGNALS`), so no source can cause it by a message.
    """
    source, messages, executable = read(fds[0]), fds[1], fds[2]
    try:
        with open(options["source"], "wb") as file:
            file.write(source)
        streams = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        streams += [(os.POSIX_SPAWN_DUP2, messages, number) for number in (1, 2)]  # type: ignore[misc]
        compiler = os.posix_spawn(options["command"][0], options["command"], os.environ, file_actions=streams)
        ended = os.waitstatus_to_exitcode(os.waitpid(compiler, 0)[1])
        if ended != 0:
            os._exit(EXIT_KILLED if (128 - ended if ended < 0 else ended) in KILLED_BY_SHELL else EXIT_COMPILE)
        with open("main", "rb") as file, open(executable, "wb") as copy:
            shutil.copyfileobj(file, copy)
        os._exit(0)
    except OSError as error:
        os.write(messages, f"error: {error}\n".encode())
        os._exit(EXIT_ERROR)


def call(fds: list[int], options: Names) -> NoReturn:
    """Call a function of a program, or a method of its class `Solution`, and write the result.

    Args:
        fds: descriptors of the source, of the arguments (a JSON list) and of the file for the result (JSON).
        options: `function`, the name of the function or method.
    """
    lift_limits()
    source, arguments = read(fds[0]), [*map(_with_whole_keys, json.loads(read(fds[1])))]
    try:
        names = load(source, "solution")
        function = find(names, options["function"])
        result = json.dumps(function(*arguments), default=_plain).encode()
    except SystemExit as ending:
        os._exit(_status(ending) or EXIT_ERROR)
    except BaseException:  # raised by the program
        os._exit(EXIT_ERROR)
    with open(fds[2], "wb") as file:
        file.write(result)
    _end(0)


def _with_whole_keys(value: Any) -> Any:
    if isinstance(value, dict) and [*value] == ["__whole_keys__"]:
        return {int(key): part for key, part in value["__whole_keys__"].items()}
    return value


def find(names: Names, name: str) -> Any:
    """Return a function of a program, or a method of its `Solution`; end the process if there is none of that name."""
    solution = names.get("Solution")
    if isinstance(solution, type) and hasattr(solution, name):
        return getattr(solution(), name)
    if not callable(names.get(name)) or names[name] is PREAMBLE.get(name):
        os._exit(EXIT_NO_FUNCTION)
    return names[name]


def _plain(value: Any) -> Any:
    """Return a NumPy value or a deque in JSON types, for `json.dumps`; raise TypeError for other types."""
    for method in ("tolist", "item"):
        if hasattr(value, method):
            return getattr(value, method)()
    if type(value).__name__ == "deque":
        return list(value)
    raise TypeError(f"a {type(value).__name__} cannot be compared")


def serve(fds: list[int], options: Names) -> NoReturn:
    """Answer a tester's requests for a program's functions and objects until the tester closes the socket.

    Args:
        fds: descriptors of the source and of the socket to the tester.
        options: unused.
    """
    source = read(fds[0])
    server = Server(Channel(fds[1]))
    try:
        names = load(source, "solution")
    except BaseException:  # raised by the program
        os._exit(EXIT_ERROR)
    server.introduce(names)
    while True:
        try:
            server.answer()
        except (EOFError, OSError):
            os._exit(0)


class Server:
    """The candidate's end of the socket to the tester. It keeps the objects that the tester refers to by number."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._objects: list[Any] = []

    def _keep(self, value: Any) -> Names:
        if isinstance(value, Callback):
            return {"callback": value.number}
        self._objects.append(value)
        kind = "exception" if isinstance(value, type) and issubclass(value, Exception) else "object"
        bases = [base.__name__ for base in value.__mro__] if kind == "exception" else []
        return {kind: [len(self._objects) - 1, getattr(type(value), "__name__", ""), bases]}

    def _stand_in(self, tag: str, content: Any) -> Any:
        return self._objects[content] if tag == "object" else Callback(self, content)

    def introduce(self, names: Names) -> None:
        """Send the tester each name that the program defines, with its plain value or a reference to its object."""
        introduced = {}
        for name, value in names.items():
            if not name.startswith("__") and value is not PREAMBLE.get(name, names):
                try:
                    introduced[name] = encode(value, self._keep)
                except Exception:  # nested too deeply, or raised by the program's own types
                    introduced[name] = self._keep(value)
        self._channel.send({"names": introduced})

    def answer(self) -> None:
        """Receive one request from the tester and answer it."""
        self._channel.send(self._do(self._channel.receive()))

    def ask(self, number: int, arguments: Any, keywords: Any) -> Any:
        """Make the tester call one of its functions, and return what the function returned.

        Until the tester has sent this result, answer its requests.
        """
        args, kwargs = encode(list(arguments), self._keep), encode(keywords, self._keep)
        self._channel.send({"call": number, "args": args, "kwargs": kwargs})
        while "returned" not in (message := self._channel.receive()):
            self._channel.send(self._do(message))
        if message["returned"] is None:
            raise RuntimeError("the tests' function raised")
        return decode(message["returned"][0], self._stand_in)

    def _do(self, message: Names) -> Names:
        try:
            target = self._objects[message["of"]]
            arguments = decode(message["args"], self._stand_in)
            keywords = decode(message["kwargs"], self._stand_in)
            result = OPERATIONS[message["do"]](target, *arguments, **keywords)
            reply = {"result": encode(result, self._keep)}
            if message["changes"]:
                reply["args"] = encode(arguments, self._keep)
            json.dumps(reply)
            return reply
        except BaseException as error:  # raised by the program; reported to the tester
            return {"error": type(error).__name__, "text": _text(error), "bases": _bases(error)}


def _text(error: BaseException) -> str:
    try:
        return str(error)[:MESSAGE_CHARACTERS].encode("ascii", "backslashreplace").decode()
    except BaseException:  # raised by the program
        return ""


def _bases(error: BaseException) -> list[str]:
    return [base.__name__ for base in type(error).__mro__]


class Callback:
    """A function of the tests that was passed to the program; a call runs it in the tester's process."""

    def __init__(self, server: Server, number: int) -> None:
        self._server = server
        self.number = number

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        return self._server.ask(self.number, arguments, keywords)


OPERATIONS: dict[str, Any] = {
    "call": lambda target, /, *arguments, **keywords: target(*arguments, **keywords),
    "get": getattr,
    "set": setattr,
    "len": len,
    "iter": iter,
    "next": next,
    "item": operator.getitem,
    "set_item": operator.setitem,
    "del_item": operator.delitem,
    "str": str,
    "repr": repr,
    "bool": bool,
    "int": int,
    "float": float,
    "isinstance": lambda target, value: isinstance(value, target),
}
