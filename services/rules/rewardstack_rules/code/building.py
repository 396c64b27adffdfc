"""Compile programs, each in a confined process with its own folder."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from rewardstack.errors import ConfigError
from rewardstack_rules.code.languages import COMPILED, LANGUAGES, MINIMAL, PROBE, PROBED, REPORT_SIGNALS, VARIABLE
from rewardstack_rules.code.launcher import Launcher, Process, SandboxError, closing, content, empty_file, memory_file
from rewardstack_rules.code.verdict import AGAIN, COMPILE_ERROR, EXIT_KILLED, FAULT, LIMITS, PASSED, Verdict, judge

SECONDS = 20.0
"""CPU limit of a compilation, in seconds, including all processes that the compiler starts."""
MEMORY = 1 << 30
MAX_BYTES = 32 << 20
"""Limit of each file that the compiler writes."""
MESSAGE_BYTES = 1 << 16
LINE = 200
"""Maximum length of a compiler error in the reason of a verdict, in characters."""
ERROR = re.compile(r"error:|undefined reference|multiple definition|relocation truncated|too large", re.IGNORECASE)
NO_COMPILER = (
    f"{VARIABLE}: no C++ compiler is on PATH (g++, c++, clang++); install g++, or set {VARIABLE} to a compiler's path"
)
REMEDY = f"install g++ with its static libraries, or set {VARIABLE} to another compiler"


class Program(NamedTuple):
    """A program that can run.

    Args:
        kind: what the launcher runs: `script` for a source, `binary` for an executable.
        data: the source or the executable.
    """

    kind: str
    data: bytes


class Builder:
    """Makes programs from sources; one compilation at a time.

    Args:
        new_launcher: returns a launcher that runs a compiler, given the compiler's path.
        compiler: path of the compiler; empty if there is none.
    """

    def __init__(self, new_launcher: Callable[[str], Launcher], compiler: str) -> None:
        self._new_launcher = new_launcher
        self._compiler = compiler
        self._works = False
        self._options: tuple[str, ...] = REPORT_SIGNALS

    def build(self, language: str, source: bytes, runner: Launcher) -> Program | Verdict:
        """Return the program, or a verdict if it cannot be built.

        Args:
            language: a key of `LANGUAGES`.
            source: the program's source.
            runner: a started launcher, in which the compiled `PROBE` is run to check the compiler.

        Raises:
            ConfigError: there is no compiler, or it cannot be used here.
            LauncherDiedError: the compiler's launcher died.
            SandboxError: the compiler could not be confined; or while it built `PROBE`, it was killed or could not run.
        """
        if not LANGUAGES[language].source:
            return Program("script", source)
        if not self._compiler:
            raise ConfigError(NO_COMPILER, VARIABLE)
        if not self._works:
            self._try(runner)
        built = self._compile(language, source)
        if isinstance(built, Verdict) and (built.name == COMPILE_ERROR or built.at_last != FAULT):
            self._build_minimal()  # the compiler itself may be broken, or the disk may be full
        return built

    def _build_minimal(self, source: str = MINIMAL) -> Program:
        """Build a program that every working compiler builds; errors are those of `_try`."""
        built = self._compile("cpp", source.encode())
        if isinstance(built, Program):
            return built
        if built.name == AGAIN:
            raise SandboxError(built.detail)
        why = f"{self._compiler} cannot build a minimal program: {built.detail or built.name}"
        raise ConfigError(f"{VARIABLE}: {why}; {REMEDY}", VARIABLE)

    def _try(self, runner: Launcher) -> None:
        """Build and run `PROBE`, to check the compiler.

        Raises:
            ConfigError: the compiler does not build the program, or the program does not run here.
            SandboxError: the compiler was killed or could not be run; a second try may succeed.
        """
        try:
            built = self._build_minimal(PROBE)
        except ConfigError:
            if not self._options:
                raise
            self._options = ()  # not a GCC
            built = self._build_minimal(PROBE)
        with (
            closing(memory_file(built.data)) as binary,
            closing(empty_file()) as stdin,
            closing(empty_file()) as stdout,
        ):
            process = Process(built.kind, [binary, stdin, stdout], SECONDS, MEMORY)
            runner.run([process], math.inf)
            printed = content(stdout)
        if printed != PROBED:
            why = f"a program that {self._compiler} built does not run here (exit status {process.status})"
            raise ConfigError(f"{VARIABLE}: {why}; {REMEDY}", VARIABLE)
        self._works = True

    def _compile(self, language: str, source: bytes) -> Program | Verdict:
        row = LANGUAGES[language]
        command = [self._compiler, *self._options, *row.options, *COMPILED, row.source, "-o", "main"]
        launcher = self._new_launcher(self._compiler)
        launcher.start()
        try:
            with closing(memory_file(source)) as text, closing(empty_file()) as log, closing(empty_file()) as binary:
                options = {"source": row.source, "command": command}
                process = Process("build", [text, log, binary], SECONDS, MEMORY, options, output=MAX_BYTES)
                launcher.run([process], math.inf)
                messages = content(log, MESSAGE_BYTES).decode("utf-8", "replace")
                return _built(process, messages, content(binary, MAX_BYTES))
        finally:
            launcher.stop()


def _built(process: Process, messages: str, binary: bytes) -> Program | Verdict:
    ended = judge(process, 0)
    if ended.name == PASSED and binary:
        return Program("binary", binary)
    if process.status == EXIT_KILLED and ended.name not in LIMITS:
        why = f"{VARIABLE}: the compiler was killed: {_first_error(messages)}"
        return Verdict(AGAIN, ended.seconds, why, at_last="memory limit")
    if ended.name in (PASSED, "runtime error"):
        return Verdict(
            AGAIN, ended.seconds, f"{VARIABLE}: the compiler could not be run: {_first_error(messages) or ended.name}"
        )
    return ended._replace(detail=_first_error(messages)) if ended.name == COMPILE_ERROR else ended


def _first_error(messages: str) -> str:
    """Return the first line of the compiler's messages that reports an error, without names of temporary files."""
    lines = messages.splitlines()
    line = next((line for line in lines if ERROR.search(line)), lines[0] if lines else "")[: 4 * LINE]
    line = re.sub(r"\S*/(?:cc|main-)\w+\.([os])\b", r"main.\1", line)
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(line.split()))[:LINE]
