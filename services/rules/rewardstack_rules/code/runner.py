"""Score a sample of the reward function `code`: find the program and the tests, run them, and compare the results.

`execute` runs in isolated processes that only this reward function uses, the runners. A runner is trusted: it knows the
expected outputs. Programs run in confined processes that the runner's launcher (`launcher`) forks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

from rewardstack.cause import Cause, cause_of_field
from rewardstack.core.lru import LruCache
from rewardstack.errors import ConfigError, RequestError, ServiceError
from rewardstack.score import NO_REFERENCE
from rewardstack_rules.code import checking
from rewardstack_rules.code.alone import Turns
from rewardstack_rules.code.building import Builder, Program
from rewardstack_rules.code.comparison import is_far_longer, same_output, same_value
from rewardstack_rules.code.extraction import extract_code
from rewardstack_rules.code.formats import Case, Checker, Problem, TestsError, read_tests
from rewardstack_rules.code.inside.processes import TaskCounter
from rewardstack_rules.code.languages import COMPILERS, DEFAULT, find_compiler
from rewardstack_rules.code.launcher import (
    Launcher,
    LauncherDiedError,
    LocalLauncher,
    Process,
    SandboxError,
    closing,
    content,
    empty_file,
    memory_file,
)
from rewardstack_rules.code.options import Options
from rewardstack_rules.code.verdict import (
    AGAIN,
    COMPILE_ERROR,
    FAULT,
    LIMITS,
    PASSED,
    UNSCORED,
    WRONG,
    Verdict,
    judge,
    wall_limit,
)
from rewardstack_rules.isolation.child import Steps
from rewardstack_rules.isolation.process import hide_memory
from rewardstack_rules.settings_table import TABLE

TESTER_SHARE = 3
"""CPU limit of a tester (the process that runs test programs), as a multiple of the program's CPU limit."""
NOT_SENT = (
    "test programs and checkers hold expected results, which SandboxFusion never gets; score this problem on a server "
    "with CODE=on and without SANDBOX_FUSION_URL"
)
MAX_DIGITS = 50_000
"""Maximum number of digits of an integer that a runner parses, as in LiveCodeBench; Python's default is 4,300."""
KEPT_CHECKERS = 8
"""Maximum number of built checkers that a runner caches.

All samples of a prompt have the same checker, so the cache saves most builds.
"""
CROWDED = "other processes may have used up the limit of threads"
KEPT_SUITES = 1000
"""Maximum number of suites of test programs of which a runner knows whether they can be scored."""


def execute(task: Mapping[str, Any]) -> Steps:
    """Score one sample; yield how far it is after each test but the last (`isolation.child.Steps`).

    Args:
        task: a task of `scoring.task.make_task`; its only reference is the whole ground truth.

    Returns:
        The fields that `scoring.task.execute` returns, and the field `code`, an object of counts: the number of tests
        with each verdict, the CPU milliseconds (`cpu_ms`), and how often the launcher died (`launcher_died`). If the
        program has a score, the field `volatile` says whether another run may end differently. If the sandbox failed,
        the field `error` is `sandbox`.
    """
    runner = _runner()
    runner.counts.clear()
    found = yield from _score(runner, task)
    cause = cause_of_field(found.get("field")).value
    unscored = {"status": "", "value": None, "parts": None, "field": "", "cause": cause}
    return {**unscored, "code": dict(runner.counts), **found}


def _score(runner: Runner, task: Mapping[str, Any]) -> Steps:
    try:
        options = Options.read(task["extra"])
        if len(task["references"]) != 1:
            return {"reason": NO_REFERENCE, "cause": Cause.NO_REFERENCE.value}
        problem = read_tests(task["references"][0]).limited(options.max_tests)
    except RequestError as error:
        return {"reason": str(error), "field": error.field or "", "cause": error.cause.value}
    except TestsError as error:
        return {"reason": str(error), "field": "ground_truth"}
    language = options.language or problem.language
    if language != DEFAULT and problem.kind != "stdin":
        why = (
            f"tests that call functions support only Python programs, but the language is {language}; use tests with "
            "standard input and output"
        )
        return {"reason": why, "field": "extra_info.language" if options.language else "ground_truth"}
    if runner.is_remote and (problem.tests or problem.checker):
        return {"reason": NOT_SENT, "field": "ground_truth"}
    parts = {"passed": 0.0, "total": float(len(problem))}
    code = extract_code(task["solution"], language, options.extract)
    if not code.strip():
        return {
            "value": 0.0,
            "reason": f"no code: the response has no closed fenced block in {language}",
            "parts": parts,
        }
    try:
        with runner.turns.together():
            program = code.encode("utf-8", "surrogatepass")
            return (yield from runner.run(language, program, problem, options, task.get("progress")))
    except ConfigError as error:
        return {"error": "sandbox", "message": str(error)}


@lru_cache(maxsize=1)
def _runner() -> Runner:
    """Return the runner of this process; the first call creates it."""
    hide_memory()
    if hasattr(sys, "set_int_max_str_digits"):  # Python 3.10.7 and later
        sys.set_int_max_str_digits(MAX_DIGITS)
    python, boundary, compiler = (os.environ.get(name, "") for name in ("CODE_PYTHON", "CODE_BOUNDARY", "CODE_CXX"))
    urls = _setting("SANDBOX_FUSION_URL")
    if not urls:
        return Runner(partial(LocalLauncher, python or sys.executable, boundary), find_compiler(compiler))
    from rewardstack_rules.code.fusion import FusionLauncher

    fusion = FusionLauncher(urls)
    return Runner(lambda _: fusion, compiler or COMPILERS[0], is_remote=True)


def _setting(name: str) -> Any:
    return TABLE[name].read(os.environ.get(name, ""))


def check() -> None:
    """Raise ConfigError if programs cannot be run here; called once, before runners are forked."""
    if _setting("SANDBOX_FUSION_URL"):
        # SandboxFusion may start later than this server, so it is not checked. Import the module here, before runners
        # are forked, so that they share it in memory.
        import rewardstack_rules.code.fusion  # noqa: F401

        return
    launcher = LocalLauncher(os.environ.get("CODE_PYTHON") or sys.executable, os.environ.get("CODE_BOUNDARY", ""))
    launcher.start()
    launcher.stop()


@dataclass
class Tally:
    """What the tests of a sample have come to.

    Args:
        total: number of tests.
        left: CPU seconds that the program may still take, for all tests together.
        checker_left: CPU seconds that the checker may still take.
        done: number of tests that were run.
        passed: number of tests that passed.
        reason: the first test that did not pass, in words; empty if there is none.
        is_volatile: whether a limit, or one that others share, may have decided a test.
    """

    total: int
    left: float
    checker_left: float
    done: int = 0
    passed: int = 0
    reason: str = ""
    is_volatile: bool = False

    def add(self, verdict: Verdict) -> None:
        """Add the verdict on the next test."""
        self.done += 1
        self.left -= verdict.seconds
        self.passed += verdict.name == PASSED
        self.is_volatile |= verdict.name in LIMITS
        if verdict.name != PASSED:
            self._fail(self.done, verdict.name)

    def is_spent(self, budget: float) -> bool:
        """Return whether no CPU time of the budget is left for the next test; if so, it counts as a limit."""
        if self.left > 0 or self.done == self.total:
            return False
        self._fail(self.done + 1, f"the tests before it used up CODE_TIMEOUT ({budget:g} s)")
        self.is_volatile = True
        return True

    def _fail(self, test: int, why: str) -> None:
        self.reason = self.reason or f"test {test} of {self.total}: {why}"

    def result(self) -> dict[str, Any]:
        """Return the fields of a sample's result that tests decide."""
        parts = {"passed": float(self.passed), "total": float(self.total)}
        return {"reason": self.reason, "parts": parts, "volatile": self.is_volatile}


class Runner:
    """Runs the tests of samples, one sample at a time.

    Args:
        new_launcher: returns a launcher. Given the path of a compiler, the launcher only compiles. Given an empty path,
            it runs programs.
        compiler: path of the compiler; empty if there is none.
        is_remote: whether launchers run programs on another machine, which gets no expected results.
    """

    def __init__(self, new_launcher: Callable[[str], Launcher], compiler: str, *, is_remote: bool = False) -> None:
        self.is_remote = is_remote
        self._launcher = new_launcher("")
        self._builder = Builder(new_launcher, compiler)
        self._suites: LruCache[bytes, Verdict] = LruCache(KEPT_SUITES)
        self._checkers: LruCache[Checker, Program] = LruCache(KEPT_CHECKERS)
        self._budget: float = _setting("CODE_TIMEOUT")
        self._tally = Tally(0, 0, 0)
        self.turns = Turns()
        self.counts: Counter[str] = Counter()

    def stop(self) -> None:
        """Stop the launcher of programs."""
        self._launcher.stop()

    def run(
        self, language: str, code: bytes, problem: Problem, options: Options, progress: Mapping[str, Any] | None = None
    ) -> Steps:
        """Build a program and run its tests, and return the result in the format of `execute`.

        Args:
            language: a key of `LANGUAGES`.
            code: the program.
            problem: the tests.
            options: the options of the sample.
            progress: what this method yielded last for the sample, if it was stopped then; None for a new sample.
        """
        self._tally = Tally(len(problem), self._budget, self._budget)
        program = self._settled(lambda: self._builder.build(language, code, self._launcher))
        if isinstance(program, Verdict):
            return self._not_built(program, problem)
        if progress is not None:
            self._tally = Tally(**progress["tally"])
            self.counts.update(progress["counts"])
        tally = self._tally
        for verdict in self._verdicts(program, problem, options, tally.done):
            self.counts[verdict.name if verdict.name in (PASSED, WRONG, FAULT, *LIMITS) else "error"] += 1
            self.counts["cpu_ms"] += round(verdict.seconds * 1000)
            tally.add(verdict)
            if verdict.name == FAULT:
                return {"error": "sandbox", "message": f"test {tally.done}: {verdict.detail}"}
            if verdict.name == UNSCORED:
                where = f"test {tally.done} of {len(problem)}: " if problem.checker else ""
                return {"reason": where + verdict.detail, "field": "ground_truth"}
            if (verdict.name != PASSED and options.score == "all") or tally.is_spent(self._budget):
                break
            if problem.cases and tally.done < len(problem):
                yield {"tally": asdict(tally), "counts": dict(self.counts)}
        return {"status": "ok", "value": options.value(tally.passed, len(problem)), **tally.result()}

    def _not_built(self, verdict: Verdict, problem: Problem) -> dict[str, Any]:
        self.counts["cpu_ms"] += round(verdict.seconds * 1000)
        if verdict.name == FAULT:
            return {"error": "sandbox", "message": verdict.detail}
        is_limit = verdict.name in LIMITS
        reason = f"compile error: the compiler exceeded its {verdict.name}" if is_limit else COMPILE_ERROR
        reason = f"{reason}: {verdict.detail}" if verdict.detail else reason
        self._tally.is_volatile |= is_limit
        return {"status": "ok", "value": 0.0, **self._tally.result(), "reason": reason}

    def _verdicts(self, program: Program, problem: Problem, options: Options, done: int) -> Iterator[Verdict]:
        """Yield a verdict for each test, in order, but the first `done`.

        Each case runs in its own process. All test programs run in one process, the tester.
        """
        with closing(memory_file(program.data)) as source:
            if problem.kind == "programs":
                yield from self._suite(source, problem, options)
                return
            for case in problem.cases[done:]:
                yield self._settled(lambda case=case: self._case(program.kind, source, problem, case, options))

    def _settled(self, run: Any) -> Any:
        """Run a test or a compilation. If the verdict is `AGAIN`, run it once more, while no other runner runs a test.

        Run it again, too, if it failed while so many processes were started that a limit that others share may have
        refused it one. If the second verdict is `AGAIN`, it becomes `Verdict.at_last`. A ServiceError becomes `FAULT`
        without a second run.
        """
        for attempt in range(2):
            try:
                self._launcher.start()
                tasks = TaskCounter()
                if attempt == 0:
                    found = run()
                else:
                    with self.turns.alone():
                        found = run()
                if self._launcher.is_shared and not _passes(found) and tasks.has_filled_limit():
                    self._tally.is_volatile = True
                    found = found if attempt else Verdict(AGAIN, detail=CROWDED)
            except LauncherDiedError:
                self.counts["launcher_died"] += 1
                found = Verdict(AGAIN, detail="the launcher of programs died")
            except SandboxError as error:
                found = Verdict(AGAIN, detail=str(error))
            except ServiceError as error:  # raised for SandboxFusion after all retries
                return Verdict(FAULT, detail=str(error))
            if not (isinstance(found, Verdict) and found.name == AGAIN):
                return found
        return found._replace(name=found.at_last)

    def _case(self, kind: str, source: int, problem: Problem, case: Case, options: Options) -> Verdict:
        program, words = ("call", {"function": problem.function}) if problem.function else (kind, {})
        with closing(_text_file(case.given)) as stdin, closing(empty_file()) as stdout:
            process = Process(program, [source, stdin, stdout], options.time_limit, options.memory, words)
            self._launcher.run([process], wall_limit(options.time_limit))
            verdict = judge(process, os.fstat(stdout).st_size)
            if verdict.name != PASSED:
                return verdict
            written = content(stdout)
        if problem.checker is not None:
            return self._checked(problem.checker, case, written, verdict)
        if problem.function:
            right = _returned(written, case.expected, problem, options)
        else:
            text = written.decode("utf-8", "replace")
            right = same_output(text, case.expected, options.compare, options.tolerance)
        return verdict if right else verdict._replace(name=WRONG)

    def _checked(self, checker: Checker, case: Case, written: bytes, verdict: Verdict) -> Verdict:
        """Run the checker on an output, and return the verdict on the test.

        Args:
            checker: the checker.
            case: the test.
            written: the program's output.
            verdict: the verdict to return if the output is right, with the program's CPU time.
        """
        if self._tally.checker_left <= 0:
            spent = f"the checker used up CODE_TIMEOUT ({self._budget:g} s) in the tests before it"
            return Verdict(UNSCORED, detail=spent)
        program = self._checkers.get(checker) or self._builder.build(
            checker.language, checker.source.encode("utf-8", "surrogatepass"), self._launcher
        )
        if isinstance(program, Verdict):
            if program.name == AGAIN:
                return program
            return Verdict(UNSCORED, detail=f"the checker failed: {program.name}: {program.detail}".rstrip(": "))
        self._checkers.put(checker, program)
        outputs = (case.expected, written.decode("utf-8", "replace"))
        texts = (case.given, *(reversed(outputs) if checker.is_testlib else outputs))
        with contextlib.ExitStack() as files:
            stdin, *rest = (files.enter_context(closing(_text_file(text))) for text in ("", *texts))
            stdout = files.enter_context(closing(empty_file()))
            source = files.enter_context(closing(memory_file(program.data)))
            process = Process(program.kind, [source, stdin, stdout, *rest], checking.SECONDS, checking.MEMORY)
            self._launcher.run([process], wall_limit(checking.SECONDS))
            ended, printed = judge(process, os.fstat(stdout).st_size), content(stdout)
        self._tally.checker_left -= ended.seconds
        if ended.name == AGAIN:
            return ended._replace(detail=f"the checker: {ended.detail}")
        accepted = None
        if ended.name not in (*LIMITS, COMPILE_ERROR):
            read = checking.by_status if checker.is_testlib else checking.by_number
            accepted = read(process.status or 0, printed)
        if accepted is None:
            why = "it printed no verdict" if ended.name == PASSED else ended.name
            return Verdict(UNSCORED, detail=f"the checker failed: {why}")
        return verdict if accepted else verdict._replace(name=WRONG)

    def _suite(self, source: int, problem: Problem, options: Options) -> Iterator[Verdict]:
        """Yield a verdict for each test program.

        If the sandbox failed or the tests are invalid, yield only one verdict, `FAULT` or `UNSCORED`.
        """
        suite = json.dumps({"setup": problem.setup, "tests": problem.tests, "entry": problem.entry}).encode()
        found = self._settled(lambda: self._check_suite(suite, options))
        if found.name == PASSED:
            found = self._settled(lambda: self._pair(source, suite, options))
        if isinstance(found, Verdict):
            yield from [found] * (1 if found.name in (FAULT, UNSCORED) else len(problem.tests))
            return
        results, ended = found
        for at in range(len(problem.tests)):
            seconds = ended.seconds / len(problem.tests)
            if results[at : at + 1] == b"1":
                yield Verdict(PASSED, seconds)
            else:
                cut_off = ended.name != PASSED and at >= len(results.rstrip(b"0"))
                yield Verdict(ended.name if cut_off else "the test failed", seconds)

    def _check_suite(self, suite: bytes, options: Options) -> Verdict:
        """Return whether test programs can be scored: `PASSED`, `UNSCORED` or `AGAIN`.

        They are run without a program, once for all samples of a prompt. So no program can cause the result.
        """
        key = hashlib.sha256(f"{options.time_limit} {options.memory} ".encode() + suite).digest()
        if (known := self._suites.get(key)) is not None:
            return known
        with closing(memory_file(suite)) as tests, closing(empty_file()) as report:
            checker = Process("check", [tests, report], TESTER_SHARE * options.time_limit, 2 * options.memory)
            self._launcher.run([checker], wall_limit(options.time_limit))
            output = content(report)
        ended = judge(checker, 0)
        self.counts["cpu_ms"] += round(ended.seconds * 1000)
        is_used, is_unscored, reason = output.partition(b"U")
        if ended.name == AGAIN:
            return ended
        if ended.name in LIMITS and not is_used:
            return Verdict(UNSCORED, detail=f"the tests exceed the {ended.name} without calling the program")
        verdict = Verdict(UNSCORED if is_unscored else PASSED, detail=reason.decode("ascii", "replace"))
        self._suites.put(key, verdict)
        return verdict

    def _pair(self, source: int, suite: bytes, options: Options) -> Verdict | tuple[bytes, Verdict]:
        """Run all test programs in one process, the tester, and the policy's program in another, the candidate.

        Returns:
            The result of each test as a byte (`1` or `0`), and the verdict on how the processes ended; or one verdict
            for all tests.
        """
        ours, theirs = socket.socketpair()
        with ours, theirs, closing(memory_file(suite)) as tests, closing(empty_file()) as report:
            candidate = Process("serve", [source], options.time_limit, options.memory, ends=[ours])
            seconds, memory = TESTER_SHARE * options.time_limit, 2 * options.memory
            tester = Process("test", [tests, report], seconds, memory, ends=[theirs])
            self._launcher.run([candidate, tester], wall_limit(options.time_limit))
            output = content(report)
        ended = judge(candidate, 0)
        if ended.name == AGAIN:
            return ended
        results, is_unscored, reason = output.partition(b"U")
        if is_unscored:
            return Verdict(UNSCORED, detail=reason.decode("ascii", "replace"))
        if tester.status != 0 and ended.name == PASSED:
            ended = judge(tester, 0)
            if ended.name == AGAIN:
                return ended
        return results, ended


def _passes(found: Verdict | Program | tuple[bytes, Verdict]) -> bool:
    """Return whether a run passed all tests, or built a program."""
    if isinstance(found, Verdict):
        return found.name == PASSED
    return isinstance(found, Program) or (found[1].name == PASSED and not found[0].strip(b"1"))


def _returned(written: bytes, expected: Any, problem: Problem, options: Options) -> bool:
    if is_far_longer(written, json.dumps(expected)):
        return False
    try:
        value = json.loads(written)
        if same_value(value, expected, options.tolerance):
            return True
        is_wrapped = problem.is_wrapped and isinstance(expected, list) and len(expected) == 1
        return is_wrapped and same_value(value, expected[0], options.tolerance)
    except (ValueError, RecursionError):
        return False


def _text_file(text: str) -> int:
    return memory_file(text.encode("utf-8", "surrogatepass"))
