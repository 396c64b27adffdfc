"""The languages of programs: their names, and how programs are compiled. `LANGUAGES` has an entry for each."""

from __future__ import annotations

import os
import re
import shutil
from typing import NamedTuple

VARIABLE = "CODE_CXX"
COMPILERS = ("g++", "c++", "clang++")
"""Names of compilers. If CODE_CXX is unset, the first of them that is on PATH is used."""
COMPILED = ("-O2", "-w", "-static", "-s", "-pthread", "-DONLINE_JUDGE")
"""Options of every compilation. Programs are linked statically, so that they need no other file when they run."""
REPORT_SIGNALS = ("-pass-exit-codes", "-wrapper", 'sh,-c,"$@"; exit $?,sh')
"""Options by which GCC runs its processes in a shell, and exits with the highest of their exit statuses. A process that
was killed then has an exit status of its own, which GCC itself reports only as a message. Other compilers refuse them.
"""
MINIMAL = "int main() {}\n"
"""A program that a working compiler builds fast."""
PROBE = "#include <bits/stdc++.h>\nint main() { std::puts(std::string(3, 'x').c_str()); }\n"
"""A program that every working compiler builds. It prints `PROBED`."""
PROBED = b"xxx\n"


class Language(NamedTuple):
    """A language.

    Args:
        names: matches every name that code fences and data sets use for the language, after `find_language` has
            converted it to lower case and removed blanks.
        source: name of the source file for the compiler; empty if programs are not compiled.
        options: the compiler's options, in addition to `COMPILED`.
    """

    names: re.Pattern[str]
    source: str = ""
    options: tuple[str, ...] = ()


LANGUAGES = {
    "python": Language(re.compile(r"(?:c?python|py|pypy)[\d.-]*")),
    "cpp": Language(
        re.compile(r"(?:gnu|ms)?(?:c\+\+|g\+\+|\+\+|cpp|cxx|cc)(?:\d[\da-z])?"), "main.cpp", ("-std=gnu++17",)
    ),
    "c": Language(re.compile(r"(?:gnu)?c(?:\d[\da-z])?"), "main.c", ("-xc", "-std=gnu17")),
}
"""Languages by name; the first is the default."""
DEFAULT = next(iter(LANGUAGES))


def find_language(name: str) -> str | None:
    """Return the key of `LANGUAGES` for a name such as `Python3` or `C++17 (GCC 7-32)`; None if it is unknown."""
    plain = re.sub(r"\s", "", name.partition("(")[0]).lower()
    return next((key for key, language in LANGUAGES.items() if language.names.fullmatch(plain)), None)


def find_compiler(setting: str) -> str:
    """Return the path of the compiler; empty if there is none.

    Args:
        setting: the value of CODE_CXX.
    """
    paths = (shutil.which(name) for name in ([setting] if setting else COMPILERS))
    return next((os.path.abspath(path) for path in paths if path), "")
