"""Read the tests in a ground truth. The formats of trainers and data sets are recognized by their fields.

`docs/code.md` has a table of the formats. Nothing in a ground truth is executed here.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rewardstack.core.misspellings import find_closest
from rewardstack_rules.code.languages import DEFAULT, LANGUAGES, find_language

MAX_NAME = 200
"""Maximum length of a function's name."""
MAX_BYTES = 16 << 20
"""Maximum length of the text of a problem's tests, in characters, and maximum size of decompressed tests, in bytes."""
MAX_TESTS = 10_000
STRING_OPCODES = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})
OTHER_OPCODES = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})
"""The pickle of a string has only these opcodes and `STRING_OPCODES`. A pickle with any other opcode is refused."""
WRAPPERS = ("target", "verification_info", "verifier_metadata", "unit_tests", "input_output", "ground_truth")
"""An object without a field of `READERS` may have its tests in one of these fields. The first one present is used."""
CHECKERS = ("generated_checker", "checker", "checker_code", "special_judge", "output_judging_function")
"""Fields that may hold the source of a checker."""
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
TEST_PROGRAM = re.compile(r"\bassert\b|\bdef test_|\bdef check\(")
"""A text is recognized as a test program if this pattern matches a part of it."""
DEFINES_CHECK = re.compile(r"^def check\(", re.MULTILINE)
CAN_FAIL = re.compile(rf"{TEST_PROGRAM.pattern}|assert|\braise\b|\bexit\(")
"""Matches code that can make a test fail. Test programs without such code are refused: every response would pass."""
KIT = "test_cases_kit"
"""Field of the HardTests data set. Its value is an object that may have one of the fields `CHECKERS`."""
CALL_JUDGE = """
import sys as _sys
_input, _expected, _output = (open(path, newline="").read() for path in _sys.argv[1:])
print(int(bool(output_judging_function(_input, _output, _expected))))
"""
"""Code that is appended to the source of HardTests' function `output_judging_function`, to make it a checker."""
EMPTY: tuple[Any, ...] = (None, "", [])
NAMING = ("fn_name", "func_name", "function_name", "entry_point", "test_setup_code", *CHECKERS)
"""Fields that decide how the tests are run. If one is misspelled, the sample is `unscored`."""
MISSPELLED = 0.85
"""A field's name counts as a misspelling of a name in `NAMING` if they are at least this similar."""


class TestsError(Exception):
    """The tests cannot be run; the sample is `unscored`."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class Case:
    """One test.

    Args:
        given: text for standard input, or the arguments of a call as a JSON list.
        expected: the expected standard output, or the expected return value.
    """

    given: str
    expected: Any


class Checker(NamedTuple):
    """A program that decides whether an output is right.

    A problem has a checker if several outputs of a test can be right. The checker gets the paths of three files: the
    input, the expected output and the program's output. A checker that uses testlib (codeforces.com/testlib) gets the
    program's output before the expected output.

    Args:
        source: source of the program.
        language: a key of `languages.LANGUAGES`.
        is_testlib: whether the checker uses testlib, so that its exit status is the verdict (`checking.by_status`). If
            False, the checker prints 1 or 0 (`checking.by_number`), as open-r1's `generated_checker` does.
    """

    source: str
    language: str = DEFAULT
    is_testlib: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """The tests of one sample: either test cases or test programs.

    Args:
        cases: test cases: pairs of standard input and output, or of arguments and return value.
        function: name of the function that the cases call; empty if they use standard input.
        is_wrapped: whether an expected value may be wrapped in a list of one element (APPS, TACO).
        setup: code that runs before the test programs.
        tests: sources of the test programs.
        entry: the function that the test programs test, as NAME or CLASS().METHOD; empty if they name it themselves.
        checker: decides whether the output of a case is right; None if it is compared with the expected output.
        language: language of the programs, a key of `languages.LANGUAGES`.
    """

    cases: list[Case] = field(default_factory=list)
    function: str = ""
    is_wrapped: bool = False
    setup: str = ""
    tests: list[str] = field(default_factory=list)
    entry: str = ""
    checker: Checker | None = None
    language: str = DEFAULT

    @property
    def kind(self) -> str:
        """The kind of tests: `stdin`, `calls` or `programs`."""
        return "programs" if self.tests else "calls" if self.function else "stdin"

    def __len__(self) -> int:
        return len(self.cases) + len(self.tests)

    def limited(self, count: int) -> Problem:
        """Return the problem with at most `count` cases: those with the longest inputs, in their original order.

        All test programs are kept.
        """
        if count >= len(self.cases):
            return self
        longest = sorted(range(len(self.cases)), key=lambda at: -len(self.cases[at].given))[:count]
        return replace(self, cases=[self.cases[at] for at in sorted(longest)])


def read_tests(text: str) -> Problem:
    """Return the tests of a ground truth.

    Args:
        text: JSON, LiveCodeBench's compressed JSON, or a test program.

    Raises:
        TestsError: the format is unknown, or the tests cannot be run here.
    """
    if len(text) > MAX_BYTES:
        raise TestsError(f"the tests have more than {MAX_BYTES >> 20} MiB")
    value = _load(text)
    if isinstance(value, str):
        value = _load(value) if value != text else value
    problem = _read(value, {})
    if not len(problem):
        raise TestsError("there are no tests")
    if len(problem) > MAX_TESTS:
        raise TestsError(f"there are more than {MAX_TESTS} tests")
    return problem


def _load(text: str) -> Any:
    """Return the value of JSON, or of LiveCodeBench's compressed tests; return any other text unchanged."""
    try:
        return json.loads(text)
    except RecursionError:
        raise TestsError("the tests are nested too deeply") from None
    except ValueError:
        return _load(_decompress(text)) if re.match(r"(eJ|eN|eA|eF)[\w+/=\s]{16,}\Z", text) else text


def _decompress(text: str) -> str:
    """Return the JSON text in base64-encoded, zlib-compressed data. The compressed data may be a pickle of the text.

    The size of the text is limited. A pickle is parsed, not loaded.
    """
    try:
        packed = base64.b64decode(text, validate=False)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, MAX_BYTES)
    except (binascii.Error, ValueError, zlib.error):
        raise TestsError("the compressed tests cannot be decompressed") from None
    if not unpacker.eof:
        raise TestsError(f"the compressed tests are cut off, or have more than {MAX_BYTES >> 20} MiB")
    if data[:1] in (b"[", b"{"):
        return data.decode("utf-8", "surrogatepass")
    return _unpickled(data)


def _unpickled(data: bytes) -> str:
    found: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in STRING_OPCODES:
                found.append(str(argument))
            elif opcode.name not in OTHER_OPCODES:
                raise TestsError("the compressed tests contain more than a string")
    except (ValueError, EOFError, LookupError, ArithmeticError):
        raise TestsError("the compressed tests are not a pickle") from None
    if len(found) != 1:
        raise TestsError("the compressed tests must contain exactly one string")
    return found[0]


def _read(value: Any, about: Mapping[str, Any]) -> Problem:
    """Return the problem for a test program, a list or an object.

    Args:
        value: the tests.
        about: the object around them; empty if there is none.
    """
    if isinstance(value, str):
        return _of_program(value, about)
    if isinstance(value, list):
        return _of_list(value, about)
    if not isinstance(value, dict):
        raise TestsError(f"the tests are in no known format: {value!r:.40}, which is neither a list nor an object")
    _refuse_misspelled(value)
    checker = _checker_of(value)
    if checker is not None:
        problem = _read({name: part for name, part in value.items() if name not in (*CHECKERS, KIT)}, about)
        if problem.kind != "stdin":
            raise TestsError("the problem has a checker, which needs tests on standard input")
        return replace(problem, checker=checker)
    if value.get("interactor"):
        raise TestsError("the problem is interactive (interactor), which is not supported")
    if value.get("input_mode") not in (None, "", "stdio", "stdin"):
        raise TestsError(f"the problem reads from {value['input_mode']!r}; only standard input is supported")
    if name := value.get("language"):
        language = find_language(str(name))
        if language is None:
            raise TestsError(f"the tests are for {name!r:.40}; available: {', '.join(LANGUAGES)}")
        return replace(_read({**value, "language": None}, about), language=language)
    for names, reader in READERS:
        if any(value.get(name) not in EMPTY for name in names):
            return reader(value)
    for name in WRAPPERS:
        if name in value:
            inner = value[name]
            return _read(_load(inner) if isinstance(inner, str) else inner, value)
    if any(name in value for names, _ in READERS for name in names):
        raise TestsError("there are no tests")
    known = ", ".join(map(repr, [*value][:5])) or "nothing"
    raise TestsError(f"the tests are in no known format: an object with {known}; docs/code.md lists the formats")


def _refuse_misspelled(value: Mapping[str, Any]) -> None:
    """Raise TestsError if the name of a text field misspells a name in `NAMING`, and the correct field has no value."""
    for name, content in value.items():
        if isinstance(content, str) and content and name not in NAMING:
            meant = find_closest(name, NAMING, MISSPELLED)
            if meant and not value.get(meant):
                raise TestsError(f"unknown field {name!r:.40}; do you mean {meant!r}?")


def _checker_of(value: Mapping[str, Any]) -> Checker | None:
    kit = value.get(KIT)
    found = {**kit, **value} if isinstance(kit, dict) else value
    name = next((name for name in CHECKERS if found.get(name)), "")
    if not name:
        return None
    source, called = found[name], found.get("checker_language")
    if isinstance(source, dict):
        called = source.get("language")
        source = next((source[part] for part in ("code", "source", "content") if source.get(part)), None)
    if not isinstance(source, str):
        raise TestsError(f"the problem needs a checker, so `{name}` must hold its source code")
    if name == "output_judging_function":
        return Checker(source + CALL_JUDGE)
    language = find_language(str(called)) if called else "cpp" if INCLUDE.search(source) else DEFAULT
    if language is None:
        raise TestsError(f"the checker is in {called!r:.40}; available: {', '.join(LANGUAGES)}")
    return Checker(source, language, language != DEFAULT and (name != "generated_checker" or "testlib" in source))


def _of_program(text: str, about: Mapping[str, Any]) -> Problem:
    if not TEST_PROGRAM.search(text):
        raise TestsError("the tests are in no known format: text that is neither JSON nor a test program")
    return _of_programs([text], about)


def _of_programs(tests: Sequence[str], about: Mapping[str, Any]) -> Problem:
    """Return the problem for test programs; raise TestsError if they contain nothing that can fail (`CAN_FAIL`).

    If a program defines `check` and there is an entry point, the program calls it with the entry point, as HumanEval
    does.

    Args:
        tests: the sources of the programs.
        about: the object around them, which may have code to run before them, and the entry point.
    """
    setup = "\n".join([*_lines(about, "test_setup_code"), *_lines(about, "test_imports")])
    if tests and not any(map(CAN_FAIL.search, [setup, *tests])):
        raise TestsError("the tests contain no `assert`, so that every response would pass them")
    entry = _entry_of(about)
    call = f"\ncheck({entry})\n" if entry else ""
    tests = [one + call if DEFINES_CHECK.search(one) else one for one in tests]
    return Problem(setup=setup, tests=tests, entry=entry)


def _entry_of(about: Mapping[str, Any]) -> str:
    entry = about.get("entry_point") or ""
    if not isinstance(entry, str):
        raise TestsError("`entry_point` must be a string")
    if entry and not (len(entry) <= MAX_NAME and all(map(str.isidentifier, entry.split("().", 1)))):
        raise TestsError("`entry_point` is not the name of a function, or CLASS().METHOD")
    return entry


def _of_list(value: Sequence[Any], about: Mapping[str, Any]) -> Problem:
    if all(isinstance(one, str) for one in value):
        return _of_programs(value, about)
    if all(isinstance(one, dict) for one in value):
        return _of_cases(value, {})
    raise TestsError("the tests are in no known format: a list whose items are not all strings or all objects")


def _of_cases(cases: Any, about: Mapping[str, Any]) -> Problem:
    """Return the problem for a list of objects, each with an input and an output.

    Either all objects are calls of the same function, or all use standard input.

    Args:
        cases: the list, or its JSON.
        about: the object around the list, which may name the function to call.
    """
    cases = _decoded(cases, "test cases")
    if not isinstance(cases, list) or not all(isinstance(one, dict) for one in cases):
        raise TestsError("the tests are in no known format: the test cases are not a list of objects")
    if cases and all("input" not in one for one in cases) and all("inputs" in one for one in cases):
        renamed = {"inputs": "input", "outputs": "output"}
        cases = [{renamed.get(name, name): part for name, part in one.items()} for one in cases]
    if any("input" not in one or "output" not in one for one in cases):
        raise TestsError("a test case has no `input`, or no `output`")
    names = {_function_of(one) or _function_of(about) for one in cases if _is_call(one, about)}
    if len(names) > 1 or (names and sum(_is_call(one, about) for one in cases) < len(cases)):
        raise TestsError("the test cases must all call the same function, or all use standard input")
    if names == {""}:
        raise TestsError("the test cases call a function, but its name is missing (`fn_name`)")
    return _paired([one["input"] for one in cases], [one["output"] for one in cases], next(iter(names), ""))


def _is_call(case: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
    kind = str(case.get("testtype") or case.get("type") or "")
    return kind.startswith("func") or (not kind.startswith("std") and bool(_function_of(case) or _function_of(about)))


def _function_of(about: Mapping[str, Any]) -> str:
    metadata = _decoded(about.get("metadata") or {}, "metadata")
    for source in (about, metadata if isinstance(metadata, dict) else {}):
        for name in ("fn_name", "func_name", "function_name"):
            if isinstance(source.get(name), str):
                return str(source[name]).strip()
    return ""


def _decoded(value: Any, what: str) -> Any:
    if not isinstance(value, str):
        return value
    found = _load(value)
    if isinstance(found, str):
        raise TestsError(f"the {what} are text, but not JSON: {value[:40]!r}")
    return found


def _paired(inputs: Any, outputs: Any, function: str) -> Problem:
    for name, values in (("inputs", inputs), ("outputs", outputs)):
        if not isinstance(values, list):
            raise TestsError(f"`{name}` must be a list, and is {'missing' if values is None else repr(values)[:40]}")
    if len(inputs) != len(outputs):
        raise TestsError(f"there are {len(inputs)} inputs and {len(outputs)} outputs")
    if not function:
        return Problem([Case(_text(one), _text(other)) for one, other in zip(inputs, outputs, strict=True)])
    if len(function) > MAX_NAME:
        raise TestsError(f"the function's name has {len(function)} characters, more than {MAX_NAME}")
    is_text = all(isinstance(one, str) for one in inputs)
    values = [_expected(one) for one in outputs] if is_text else outputs
    pairs = zip(map(_arguments, inputs), values, strict=True)
    return Problem([Case(one, other) for one, other in pairs], function, is_wrapped=not is_text)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise TestsError(f"an input or output is a {type(value).__name__}, not text")
    return str(value)


def _arguments(value: Any) -> str:
    """Return the arguments of a call as a JSON list.

    Args:
        value: a string with one JSON value per line, a list of arguments, or a single argument.
    """
    if isinstance(value, str):
        try:
            value = [json.loads(line) for line in value.split("\n") if line.strip()]
        except (ValueError, RecursionError):
            raise TestsError("the arguments of a call are not JSON, one value per line") from None
    if not isinstance(value, list):
        value = [value]
    return json.dumps([_with_whole_keys(one) for one in value])


def _with_whole_keys(value: Any) -> Any:
    """Mark an object whose keys all look like integers, so that `inside.programs.call` converts the keys to `int`.

    The conversion is needed because all keys in JSON are strings. verl's prime_code converts such keys, too.
    """
    if isinstance(value, dict) and value and all(re.fullmatch(r"-?\d{1,18}", str(key)) for key in value):
        return {"__whole_keys__": value}
    return value


def _expected(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _of_pairs(value: Mapping[str, Any]) -> Problem:
    """Return the problem for the lists `inputs` and `outputs`; they test a function if the object names one."""
    inputs, outputs = (_decoded(value.get(name), name) for name in ("inputs", "outputs"))
    return _paired(inputs, outputs, _function_of(value))


def _of_asserts(value: Mapping[str, Any]) -> Problem:
    """Return the problem for a list of `assert` statements, with the code that runs before them."""
    tests = next(value[name] for name in ("assert_case", "test_list", "asserts") if value.get(name) not in EMPTY)
    tests = [tests] if isinstance(tests, str) else tests
    if not isinstance(tests, list) or not all(isinstance(one, str) for one in tests):
        raise TestsError("the asserts are not a list of strings")
    return _of_programs(tests, value)


def _lines(value: Mapping[str, Any], name: str) -> list[str]:
    """Return the code in a field: a string or a list of strings; raise TestsError if it is neither."""
    code = value.get(name) or ""
    lines = code if isinstance(code, list) else [code] if code else []
    if not all(isinstance(line, str) for line in lines):
        raise TestsError(f"`{name}` must be a string or a list of strings")
    return lines


def _of_test(value: Mapping[str, Any]) -> Problem:
    """Return the problem for the field `test` or `functional`: a test program, or a list (`_of_list`)."""
    test = value.get("test") or value.get("functional")
    if not isinstance(test, (str, list)):
        raise TestsError("`test` must be a string or a list")
    return _of_list([test] if isinstance(test, str) else test, value)


def _of_live_code_bench(value: Mapping[str, Any]) -> Problem:
    cases: list[Any] = []
    for name in ("public_test_cases", "private_test_cases"):
        found = _decoded(value.get(name) or [], name.replace("_", " "))
        if not isinstance(found, list):
            raise TestsError(f"`{name}` must be a list of objects")
        cases += found
    return _of_cases(cases, value)


def _of_code_contests(value: Mapping[str, Any]) -> Problem:
    inputs, outputs = [], []
    for name in ("public_tests", "private_tests", "generated_tests"):
        tests = _decoded(value.get(name) or {"input": [], "output": []}, name)
        if not isinstance(tests, dict) or not all(isinstance(tests.get(part), list) for part in ("input", "output")):
            raise TestsError(f"`{name}` must be an object of the lists `input` and `output`")
        inputs += tests["input"]
        outputs += tests["output"]
    return _paired(inputs, outputs, "")


def _of_named_cases(value: Mapping[str, Any]) -> Problem:
    cases = next(value[name] for name in CASE_LISTS if value.get(name) not in EMPTY)
    cases = _decoded(cases, "test cases")
    if isinstance(cases, dict):
        return _read(cases, value)
    if isinstance(cases, list) and cases and all(isinstance(one, str) for one in cases):
        return _of_programs(cases, value)
    return _of_cases(cases, value)


CASE_LISTS = ("test_cases", "official_tests", "tests")
READERS: tuple[tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Problem]], ...] = (
    (("public_test_cases", "private_test_cases"), _of_live_code_bench),
    (("public_tests", "private_tests"), _of_code_contests),
    (("assert_case", "test_list", "asserts"), _of_asserts),
    (("inputs", "outputs"), _of_pairs),
    (("test", "functional"), _of_test),
    (CASE_LISTS, _of_named_cases),
)
