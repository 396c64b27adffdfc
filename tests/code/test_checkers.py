"""Where several outputs are right, the row's own checker decides; a checker that fails is the row's fault."""

from __future__ import annotations

from typing import Any

from rewardstack_rules.code.checking import by_number, by_status
from tests.code.cases import sample
from tests.rules.conftest import RewardServer
from tests.support.table import Table

SORTED = """
import sys
given, expected, output = (open(path).read().split() for path in sys.argv[1:])
print(int(sorted(output) == sorted(expected) and len(given) == 1))
"""
"""Of open-r1's kind: the arguments are input, expected output, output."""
JUDGE = """
def output_judging_function(input_str, candidate_output, reference_output):
    return input_str.strip() == "3" and candidate_output.split() == ["2", "1"] and reference_output.split()[0] == "1"
"""
TWO = {"input": "3\n", "output": "1 2\n"}


def row(source: Any, field: str = "generated_checker", **more: Any) -> dict[str, Any]:
    """Return a ground truth with a checker, as open-r1 has it."""
    return {"official_tests": [TWO], field: source, **more}


def prints(word: str, status: int = 0) -> dict[str, Any]:
    """Return the ground truth of a checker that prints a word."""
    return row(f"import sys\nprint({word!r})\nsys.exit({status})")


HUGE = "import sys\nsys.stdout.write('7' * (15 << 20))"
OUTPUT = "import sys\ndata = open(sys.argv[3]).read()\n"
DECIDED: dict[str, tuple[dict[str, Any], float]] = {
    "another order": (sample("print(2, 1)", row(SORTED)), 1.0),
    "another order, Windows line ends": (sample("print('2\\r\\n1', end='\\r\\n')", row(SORTED)), 1.0),
    "other numbers": (sample("print(2, 3)", row(SORTED)), 0.0),
    "no output": (sample("pass", row(SORTED)), 0.0),
    "the expected output, which the checker refuses": (sample("print(1, 2)", prints("0")), 0.0),
    "a checker in the row's column": (sample("print(2, 1)", {"verification_info": row(SORTED)}), 1.0),
    "a checker beside the tests' column": (
        sample("print(2, 1)", {"generated_checker": SORTED, "verification_info": {"test_cases": [TWO]}}),
        1.0,
    ),
    "checker": (sample("print(2, 1)", row(SORTED, "checker")), 1.0),
    "checker_code": (sample("print(2, 1)", row(SORTED, "checker_code")), 1.0),
    "an object with the code": (sample("print(2, 1)", row({"code": SORTED}, "checker")), 1.0),
    "HardTests": (
        sample("print(2, 1)", {"test_cases": [TWO], "test_cases_kit": {"output_judging_function": JUDGE}}),
        1.0,
    ),
    "HardTests refuses": (sample("print(1, 2)", row(JUDGE, "output_judging_function")), 0.0),
    "CodeContests": (
        sample("print(2, 1)", {"public_tests": {"input": ["3"], "output": ["1 2"]}, "checker": SORTED}),
        1.0,
    ),
    "a share": (sample("print(1)", prints("0.5")), 0.0),
    "1.0": (sample("print(1)", prints("1.0")), 1.0),
    "a comment before the verdict": (sample("print(1)", prints("close enough\n1")), 1.0),
    "a refusal with an exit status": (sample("print(1)", prints("0", 1)), 0.0),
    "bytes that are no text": (
        sample("import os\nos.write(1, b'\\xff\\xfe')", row(OUTPUT + "print(int(len(data) == 2))")),
        1.0,
    ),
    "a long output": (sample(HUGE, row(OUTPUT + "print(int(len(data) == 15 << 20))")), 1.0),
    "a program that fails is not checked": (sample("print(2, 1)\n1/0", prints("1")), 0.0),
    "a program with a limit is not checked": (sample("while True: pass", prints("1"), time_limit=0.2), 0.0),  # expires
}
FAILED: dict[str, tuple[dict[str, Any], str]] = {
    "raises": (row("1/0"), "test 1 of 1: the checker failed: runtime error"),
    "is no program": (row("def"), "the checker failed: compile error"),
    "prints nothing": (row("pass"), "printed no verdict"),
    "prints words": (prints("correct"), "printed no verdict"),
    "prints a number above 1": (prints("2"), "printed no verdict"),
    "prints nan": (prints("nan"), "printed no verdict"),
    "accepts, and fails": (prints("1", 3), "runtime error"),
    "fills its output": (row("print('1' * (17 << 20))"), "output limit"),
    "takes all memory": (row("x = bytearray(b'1') * (3 << 30)"), "the checker failed"),
    "opens what it may not": (row("open('/etc/passwd')\nprint(1)"), "runtime error"),
    "starts a process": (row("import os\nos.fork()\nprint(1)"), "runtime error"),
    "writes into its files": (row("import sys\nopen(sys.argv[3], 'w').write('1 2')\nprint(1)"), "runtime error"),
}


def test_checkers(server: RewardServer, table: Table) -> None:
    """The checker of a row decides about outputs, and about nothing else."""
    scores = server.score(*(item for item, _ in DECIDED.values()))
    for (name, (_, value)), score in zip(DECIDED.items(), scores, strict=True):
        with table.case(name):
            assert (score["status"], score["value"]) == ("ok", value), score


def test_checkers_that_fail(server: RewardServer, table: Table) -> None:
    """A checker without a verdict leaves the sample unscored; it may do as little as a program."""
    scores = server.score(*(sample("print(1, 2)", truth) for truth, _ in FAILED.values()))
    for (name, (_, reason)), score in zip(FAILED.items(), scores, strict=True):
        with table.case(name):
            assert score["status"] == "unscored" and reason in score["reason"], score


def test_the_program_does_not_see_the_checker(server: RewardServer) -> None:
    """A program has no descriptor of the checker or of the expected output."""
    source = "import os\nprint([fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')])"
    checker = OUTPUT + "print(int(data.strip() == '[]'))"
    assert server.score(sample(source, row(checker)))[0]["value"] == 1.0


def test_verdicts(table: Table) -> None:
    """A checker's verdict is its last number, or its exit status."""
    for status, printed, number, by_code in (
        (0, b"1", True, True),
        (0, b"0\n", False, None),
        (0, b"", None, True),
        (0, b"TRUE", True, True),
        (1, b"False", False, False),
        (2, b"", None, False),
        (3, b"", None, None),
        (7, b"points 0.5", False, False),
        (-9, b"1", None, None),
        (126, b"", None, None),
        (0, b"1e999999", None, True),
        (0, b"\xff\xff", None, True),
    ):
        with table.case(f"{status} {printed!r}"):
            assert (by_number(status, printed), by_status(status, printed)) == (number, by_code)
