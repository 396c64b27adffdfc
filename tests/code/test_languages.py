"""Programs in C++ and C are compiled once, confined, and then run as programs in Python are."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from rewardstack_rules.code.building import Builder
from rewardstack_rules.code.languages import find_compiler, find_language
from rewardstack_rules.code.launcher import LocalLauncher
from rewardstack_rules.code.verdict import COMPILE_ERROR, Verdict
from tests.code.cases import CASES, sample
from tests.code.unconfined import Bait
from tests.rules.conftest import RewardServer, clean_environment
from tests.support.table import Table
from tests.support.waiting import eventually

SUM = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}
ONE = {"inputs": [""], "outputs": ["1"]}
ALL = "#include <bits/stdc++.h>\nusing namespace std;\n"
ADD = ALL + "int main() { int a, b; cin >> a >> b; cout << a + b << endl; }"
TESTLIB = """
#include <cstdio>
int main(int count, char **paths) { // testlib
    int given, output, expected;
    if (count != 4) return 3;
    FILE *files[3] = {fopen(paths[1], "r"), fopen(paths[2], "r"), fopen(paths[3], "r")};
    if (fscanf(files[0], "%d", &given) != 1 || fscanf(files[2], "%d", &expected) != 1) return 3;
    if (fscanf(files[1], "%d", &output) != 1) return 2;
    return output % given == 0 && expected == 6 ? 0 : 1;
}
"""
"""Takes the paths of input, output and expected output, and ends with testlib's exit statuses."""


def cpp(program: str, tests: Any = ONE, language: str = "cpp", **options: Any) -> dict[str, Any]:
    """Return a sample whose response is a program in C++."""
    return {**sample("", tests, language=language, **options), "solution_str": f"```{language}\n{program}\n```"}


def scores_of(server: RewardServer, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return scores, asked for one by one, however long compilations take on a busy machine."""
    return [score for item in items for score in server.score(item)]


def several(*blocks: tuple[str, str]) -> str:
    """Return a response of several fences."""
    return "\n\n".join(f"```{tag}\n{program}\n```" for tag, program in blocks)


TRIPLE = [{"input": "3", "output": "6"}]
PYTHON = "print(sum(map(int, input().split())))"
CASES_OK: dict[str, tuple[dict[str, Any], Any]] = {
    "right": (cpp(ADD, SUM), (1.0, "")),
    "wrong": (cpp(ADD.replace("a + b", "3"), SUM, score="share"), (0.5, "test 2 of 2: wrong answer")),
    "C": (
        cpp('#include <stdio.h>\nint main(void) { int a, b; scanf("%d%d", &a, &b); printf("%d", a + b); }', SUM, "c"),
        (1.0, ""),
    ),
    "the row's language": (
        {**cpp(ADD), "ground_truth": {"language": "C++", **SUM}, "extra_info": {}},
        (1.0, ""),
    ),
    "the option before the row": (sample(PYTHON, {"language": "cpp", **SUM}, language="python"), (1.0, "")),
    "Windows line ends": (cpp(ADD.replace("\n", "\r\n").replace("endl", r'"\r\n"'), SUM), (1.0, "")),
    "fences of several languages": (
        {**cpp("", SUM), "solution_str": several(("cpp", ADD), ("python", "print(0)"), ("", "3"))},
        (1.0, ""),
    ),
    "the last of its language": (
        {**cpp("", SUM), "solution_str": several(("cpp", "int x"), ("C++17", ADD), ("c", "int x"))},
        (1.0, ""),
    ),
    "none of its language": ({**cpp("", SUM), "solution_str": several(("python", PYTHON))}, (0.0, "no code")),
    "no output": (cpp("int main() {}", SUM), (0.0, "test 1 of 2: wrong answer")),
    "no output, and none expected": (cpp("int main() {}", {"inputs": [""], "outputs": [""]}), (1.0, "")),
    "no main": (cpp("int x;"), (0.0, "compile error: ")),
    "a syntax error": (cpp(ADD.replace(";", "", 1), SUM), (0.0, "compile error: main.cpp:2:")),
    "a function that is missing": (cpp("void f(); int main() { f(); }"), (0.0, "undefined reference to `f()'")),
    "exit status": (cpp(ADD.replace("endl;", "endl; return 65;"), SUM), (0.0, "runtime error")),
    "exception": (cpp(ALL + "int main() { vector<int>().at(1); }"), (0.0, "runtime error")),
    "null pointer": (cpp("int main() { *(volatile int *)0 = 1; }"), (0.0, "runtime error")),
    "assert": (cpp(ALL + "int main() { assert(rand() == 0); }"), (0.0, "runtime")),
    "CPU limit": (
        cpp("int main() { for (volatile int i = 0;; i++); }", time_limit=0.2),  # expires
        (0.0, "time limit"),
    ),
    "asleep": (
        cpp("#include <unistd.h>\nint main() { pause(); }", time_limit=0.1),  # expires
        (0.0, "time limit"),
    ),
    "output limit": (cpp(ALL + "int main() { for (;;) puts(string(4096, 'x').c_str()); }"), (0.0, "output limit")),
    "a long output": (
        cpp(ALL + "int main() { fputs(string(1 << 23, '7').c_str(), stdout); }", {**ONE, "outputs": ["7" * (1 << 23)]}),
        (1.0, ""),
    ),
    "memory limit": (
        cpp(ALL + "int main() { vector<char> x(300 << 20, 1); cout << (int)x[7]; }", memory_mb=64),
        (0.0, "memory limit"),
    ),
    "memory that is never touched": (cpp("char x[300 << 20]; int main() { return x[7]; }", SUM), (0.0, "wrong answer")),
    "arrays beyond every limit": (cpp("char x[1800 << 20]; int main() { return x[7]; }"), (0.0, "runtime error")),
    "deep recursion": (
        cpp(ALL + "int f(int n) { volatile char x[64] = {1}; return n ? f(n - 1) + x[0] : 0; }\n"
            "int main() { cout << f(500000) / 500000; }"),
        (1.0, ""),
    ),
    "threads": (
        cpp(ALL + "int main() { atomic<int> n{0}; vector<thread> t;"
            " for (int i = 0; i < 8; i++) t.emplace_back([&] { n++; });"
            " for (auto &one : t) one.join(); cout << n / 8; }"),
        (1.0, ""),
    ),
    "ONLINE_JUDGE": (
        cpp(ALL + '#ifndef ONLINE_JUDGE\n#error no judge\n#endif\nint main() { puts("1"); }'),
        (1.0, ""),
    ),
    "a checker in C++": (cpp('#include <cstdio>\nint main() { puts("9"); }', {
        "test_cases": TRIPLE, "checker": TESTLIB}), (1.0, "")),
    "a checker in C++ refuses": (cpp('#include <cstdio>\nint main() { puts("8"); }', {
        "test_cases": TRIPLE, "checker": TESTLIB}), (0.0, "wrong answer")),
    "a checker in C++ for Python": (
        sample("print(9)", {"test_cases": TRIPLE, "checker": {"language": "cpp", "code": TESTLIB}}),
        (1.0, ""),
    ),
    "a checker in Python for C++": (
        cpp('#include <cstdio>\nint main() { puts("9"); }', {**ONE, "generated_checker": "print(1)"}),
        (1.0, ""),
    ),
}  # fmt: skip
FORGED = (
    "g++: fatal error: Killed signal terminated program cc1plus",
    "x: error: Terminated signal terminated program as",
    "out of memory allocating 65536 bytes",
    "virtual memory exhausted: Cannot allocate memory",
)
"""Messages of a compiler that was killed or had too little memory."""
EACH_KIND = ("right", "C", "a syntax error", "a checker in C++")
HOSTILE: dict[str, tuple[str, str]] = {
    "a secret file": ('#include "/etc/passwd"\nint main() {}', "Permission denied"),
    "an endless device": ("#include </dev/zero>\nint main() {}", "Permission denied"),
    "its environment": ('#include "/proc/self/environ"\nint main() {}', "Permission denied"),
    "a file in the executable": ('asm(".incbin \\"/etc/passwd\\"");\nint main() {}', "compile error"),
    "a huge executable": ('asm(".fill 1 << 30, 4, 7");\nint main() {}', "compile error"),
    "a huge executable of a library": (
        'asm(".rept 100000\\n.incbin \\"/usr/lib/x86_64-linux-gnu/libc.so.6\\"\\n.endr");\nint main() {}',
        "compile error",
    ),
    "templates without end": (
        "template <int n, int m> struct F { static const int v = F<n - 1, m>::v + F<n - 1, m + (1 << n)>::v; };\n"
        "template <int m> struct F<0, m> { static const int v = m; };\nint main() { return F<25, 0>::v; }",
        "compile error: the compiler exceeded its",
    ),
    "includes without end": ('#include "main.cpp"\n#include "main.cpp"\nint main() {}', "compile error"),
    "macros without end": (
        "#define A(x) x x x x x x x x\n#define B(x) A(A(A(A(x))))\n#define C(x) B(B(B(B(x))))\nint main() { C(;) }",
        "compile error",
    ),
    "errors without end": (
        "#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(A(x))))\nint main() { B(A(no;)) }",
        "compile error: main.cpp:3:",
    ),
    "a message like the driver's": (
        'int main() {}\nstatic_assert(false, "\\ng++: fatal error: Killed signal terminated program cc1plus");',
        "compile error",
    ),
    "a long line": ('static_assert(false, "' + "/ccx" * 15_000 + '");\nint main() {}', "compile error: main.cpp:1:"),
    "a line that hides its place": ('#line 1 "/usr/include/x"\nint main() { no; }', "compile error"),
}


def test_each_kind(needs_compiler: None, server: RewardServer, table: Table) -> None:
    """Programs in C++ and C are compiled and tested, by a checker, too; a compile error scores 0."""
    check_languages(server, table, {name: CASES_OK[name] for name in EACH_KIND})


@pytest.mark.nightly
def test_languages(needs_compiler: None, server: RewardServer, table: Table) -> None:
    """Each program in C++ or C has its value, and a reason that names the first test or the first error."""
    check_languages(server, table, CASES_OK)


def check_languages(server: RewardServer, table: Table, cases: dict[str, tuple[dict[str, Any], Any]]) -> None:
    """Compare the scores of programs to what they should be."""
    scores = scores_of(server, (item for item, _ in cases.values()))
    for (name, (_, (value, reason))), score in zip(cases.items(), scores, strict=True):
        with table.case(name):
            assert (score["status"], score["value"]) == ("ok", value), score
            assert reason in score["reason"] and bool(reason) == bool(score["reason"]), score


def test_messages_of_a_source(needs_compiler: None, table: Table) -> None:
    """No message that a source causes makes its compile error another verdict, so nothing is built again."""
    launcher = partial(LocalLauncher, sys.executable, "")
    runner = launcher("")
    runner.start()
    builder = Builder(launcher, find_compiler(""))
    try:
        for message in FORGED:
            with table.case(message):
                built = builder.build("cpp", f'#line 1 "{message}"\n#error {message}\nint main() {{}}'.encode(), runner)
                assert isinstance(built, Verdict) and built.name == COMPILE_ERROR, built
    finally:
        runner.stop()


@pytest.mark.nightly
def test_hostile_sources(needs_compiler: None, server: RewardServer, table: Table) -> None:
    """A source reaches nothing by its compiler, and exceeds no limit of it; it scores 0."""
    scores = scores_of(server, (cpp(source) for source, _ in HOSTILE.values()))
    for (name, (_, reason)), score in zip(HOSTILE.items(), scores, strict=True):
        with table.case(name):
            assert (score["status"], score["value"]) == ("ok", 0.0), score
            assert reason in score["reason"] and "root" not in score["reason"], score
    with table.case("nothing is left"):
        eventually(
            lambda: not [one for one in psutil.process_iter(["cwd"]) if "rewardstack-build-" in (one.info["cwd"] or "")]
        )


def test_attacks(needs_compiler: None, server: RewardServer, bait: Bait, table: Table) -> None:
    """A compiled program can do as little as one in Python."""
    source = bait.fill((CASES / "attacks.cpp").read_text(), server.process.pid)
    names = [line.split('"')[1] for line in source.splitlines() if line.strip().startswith("TRY(")]
    checker = "import sys\nwords = open(sys.argv[3]).read().split()\nprint(int(words == ['end']))"
    [score] = server.score(cpp(source, {**ONE, "generated_checker": checker}, time_limit=30))
    assert len(names) > 20
    with table.case("contained"):
        assert (score["status"], score["value"]) == ("ok", 1.0), score
    with table.case("nothing is touched"):
        assert bait.touched() == []
    int80 = 'int main() { int r; asm volatile("int $0x80" : "=a"(r) : "0"(20)); __builtin_printf("1"); }'
    with table.case("calls of 32 bits"):
        assert server.score(cpp(int80))[0]["reason"] == "test 1 of 1: runtime error"


def test_unscored(server: RewardServer, table: Table) -> None:
    """A language without a row, and functions in another language than Python, are the row's fault."""
    for name, item, reason in (
        ("no such language", sample("x", SUM, language="cobol"), "extra_info.language"),
        ("a number", sample("x", SUM, language=7), "extra_info.language"),
        ("the row's", sample("x", {"language": "rust", **SUM}), "available: python, cpp, c"),
        ("calls", cpp(ADD, {"inputs": ["1"], "outputs": ["1"], "fn_name": "f"}), "only Python programs"),
        ("asserts", cpp(ADD, ["assert f(1)"]), "only Python programs"),
        ("a checker that does not compile", sample("print(1)", {**ONE, "checker": "#include <no.h>"}), "no.h"),
    ):
        with table.case(name):
            [score] = server.score(item)
            assert score["status"] == "unscored" and reason in score["reason"], score


def test_names(table: Table) -> None:
    """A language has many names."""
    for name, language in {
        **dict.fromkeys(("python", "Python3", "py", "pypy3", "python3.11", "CPython", "PyPy 3-64"), "python"),
        **dict.fromkeys(
            ("cpp", "C++", "c++17", "CPP20", "cxx", "cc", "GNU C++17", "g++", "c++2a", "gnu++17", "C++20 (GCC 13-64)"),
            "cpp",
        ),
        **dict.fromkeys(("c", "C", "c11", "GNU C11"), "c"),
        **dict.fromkeys(("", "java", "csharp", "c#", "cs", "cpx", "(c)", "pyx", "cuda", "go", "text"), None),
    }.items():
        with table.case(name):
            assert find_language(name) == language


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can read, in which programs of a server that runs as root can read, too."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_broken_compiler(needs_process: None, start: Callable[..., RewardServer], open_folder: Path) -> None:
    """With a compiler that builds nothing, programs in C++ fail with the remedy; Python's are scored."""
    broken = open_folder / "g++"
    broken.write_text("#!/bin/sh\necho main.cpp:1: error: disk on fire\nexit $((1 - $#))\n")
    broken.chmod(0o755)
    server = start("--workers", "1", CODE="on", CODE_PROCESSES=1, CODE_CXX=broken)
    compiled, python = server.score(cpp(ADD, SUM), sample(PYTHON, SUM))
    assert compiled["status"] == "failed" and "disk on fire; install g++" in compiled["reason"], compiled
    assert f"CODE_CXX: {broken}" in compiled["reason"]
    assert python["value"] == 1.0


def test_no_compiler(needs_process: None, tmp_path: Path) -> None:
    """Without a compiler on PATH, a program in C++ is not scored, and the message names the setting and the remedy."""
    task = {"solution": f"```cpp\n{ADD}\n```", "references": [json.dumps(SUM)], "extra": {"language": "cpp"}}
    source = f"""
from rewardstack_rules.code.runner import execute
try: next(execute({task!r}))
except StopIteration as end: print(end.value)
"""
    environment = clean_environment(PATH=tmp_path)
    said = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=True)
    assert "'error': 'sandbox'" in said.stdout and "CODE_CXX: no C++ compiler is on PATH" in said.stdout
