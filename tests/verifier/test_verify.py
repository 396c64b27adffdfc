"""`verify`: references, reasons, and that it is pure and survives whatever it is given."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading

import pytest

from rewardstack_verifier import verify
from rewardstack_verifier.bounds import MAX_RESPONSE
from rewardstack_verifier.verification import warm_up
from tests.support.table import Table

DIGITS = "1" * 900_000


REFERENCES = [
    ("\\boxed{5}", ["4", "5"], (True, "")),
    ("\\boxed{5}", ["\\frac{1}{", "5"], (True, "")),
    ("\\boxed{5}", ["", "4"], (False, "wrong answer")),
    ("\\boxed{5}", ["\\frac{1}{", "4"], (False, "wrong answer")),
    ("", ["5"], (False, "no answer")),
    ("\\boxed{\\frac{1}{}", ["\\frac{1}{"], (None, "the reference cannot be parsed")),
    ("\\boxed{\\int f(x)\\,dx}", ["\\int f(x) dx"], (True, "")),
    ("\\boxed{\\int f(x)\\,dx}", ["\\int g(x)\\,dx"], (None, "the reference cannot be parsed")),
    ("\\boxed{@@ 5}", ["5"], (False, "wrong answer")),
    ("\\boxed{5}", [], (None, "the reference is empty")),
    ("\\boxed{5}", [" ", ""], (None, "the reference is empty")),
    ("", [""], (None, "the reference is empty")),
    ("", ["\\frac{1}{"], (None, "the reference cannot be parsed")),
    ("\\boxed{5}", [DIGITS], (None, "the reference cannot be parsed: too long")),
    ("\\boxed{5}", [DIGITS, "\\frac{1}{"], (None, "no reference can be parsed; the first: too long")),
    ("\\boxed{5}", ["\\frac{1}{", DIGITS], (None, "no reference can be parsed")),
    ("\\boxed{5}", ["9^{9^{9^9}}"], (False, "wrong answer")),
    (f"\\boxed{{{DIGITS}}}", ["5"], (False, "the answer cannot be parsed: too long")),
    ("x" * (MAX_RESPONSE + 1), ["5"], (False, "the response is too long")),
    ("x" * (MAX_RESPONSE + 1), [""], (None, "the reference is empty")),
    ("\\boxed{9^{9^{9^{9}}}}", ["5"], (False, "wrong answer")),
    ("\\boxed{9^{9^{9^{9}}}}", ["9^{9^{9^{9}}}"], (True, "")),
    ("\\boxed{9^{9^{9^{8}}}}", ["9^{9^{9^{9}}}"], (False, "wrong answer")),
]


def test_references_and_reasons(table: Table) -> None:
    """Any reference can make an answer right; only one that can be read can make it wrong; bounds say so."""
    for response, references, expected in REFERENCES:
        with table.case(f"{response[:30]!r} {len(response)}, {[reference[:20] for reference in references]}"):
            verdict = verify(response, references)
            assert (verdict.right, verdict.reason) == expected


HOSTILE = [
    "\ud800",
    "\\boxed{\ud800}",
    "\x00",
    "\\boxed{\x00}",
    "<answer>" * 20_000,
    "\\boxed{" * 100_000,
    "\\boxed{1}, " * 50_000,
    "\\boxed{}" * 100_000,
    "{" * 1_000_000,
    "$" * 1_000_000,
    "$1" * 400_000,
    "\\(" * 400_000,
    "\\[" * 400_000,
    "the answer is " * 70_000,
    "answer to " * 90_000,
    "answer" + " " * 900_000,
    "1," * 400_000,
    "-" * 1_000_000,
    "\\boxed{" + "\\frac{" * 300 + "1" + "}{2}" * 300 + "}",
    "\\boxed{" + "(" * 900 + "}",
    "\\boxed{" + "9!" * 400 + "}",
    "\\boxed{" + "-" * 900 + "1}",
    "\\boxed{" + "1," * 450 + "1}",
    "\\boxed{" + "\\frac" * 180 + "}",
    "\\boxed{" + "\\sqrt" * 150 + "2}",
    "\\boxed{" + "\\text{" * 19 + "a" + "}" * 19 + "}",
    "\\boxed{i < 3}",
    "\\boxed{\\begin{pmatrix} 1 & 2 \\\\ 3 \\end{pmatrix}}",
    "\\boxed{\\frac{1}{0}}",
    "\\boxed{0/0}",
    "\\boxed{\\log 0}",
]


def test_hostile_response(table: Table) -> None:
    """Whatever a response holds, it is that response's wrong answer, and neither an error nor a hang."""
    for response in HOSTILE:
        with table.case(f"{response[:20]!r} {len(response)}"):
            assert verify(response, ["5"]).right is False


def test_hostile_reference(table: Table) -> None:
    """Whatever a reference holds, an answer that is not it is not right, and there is neither an error nor a hang."""
    for reference in HOSTILE:
        with table.case(f"{reference[:20]!r} {len(reference)}"):
            assert verify("\\boxed{77}", [reference]).right is not True


def test_thread_and_signals() -> None:
    """It works off the main thread, where signals cannot be used, and leaves the alarm's handler alone."""
    handler = signal.getsignal(signal.SIGALRM)
    verdicts: list[bool | None] = []
    thread = threading.Thread(target=lambda: verdicts.append(verify("\\boxed{\\sqrt{8}}", "2\\sqrt{2}").right))
    thread.start()
    thread.join()
    assert verdicts == [True]
    assert signal.getsignal(signal.SIGALRM) is handler


@pytest.mark.usefixtures("needs_process")
def test_silent() -> None:
    """A verdict prints nothing."""
    code = "from rewardstack_verifier import verify; print(verify('\\\\boxed{2x}', ['x+x']).right)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_path())
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_warm_up(caplog: pytest.LogCaptureFixture) -> None:
    """Warming up changes no verdict and says nothing."""
    caplog.set_level(logging.DEBUG)
    warm_up()
    assert verify("\\boxed{\\frac{3}{2}}", "1.5").right is True
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def _path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path)}


@pytest.mark.parametrize(
    "reference",
    [
        "9" * 5000,
        "+".join(f"{at}x^{{{at}}}" for at in range(1, 330)),
        r"\begin{pmatrix}"
        + r"\\".join("&".join(str(row * 40 + at) for at in range(40)) for row in range(40))
        + r"\end{pmatrix}",
        r"\frac{100!}{2^{50}}",
        "10^{10^{10}}",
    ],
    ids=["an integer", "a polynomial", "a matrix", "a factorial", "a tower"],
)
def test_same_text(reference: str) -> None:
    """A reference in a box is right however long or large it is, also in bold or with other spaces."""
    for answer in (reference, rf"\mathbf{{{reference}}}", rf"\displaystyle {reference}", rf"\,{reference}\,"):
        assert verify(rf"So it is $\boxed{{{answer}}}$.", [reference]).right is True
    assert not verify(rf"So it is $\boxed{{{reference}1}}$.", [reference]).right
