"""A situation as data: a machine, how it is broken, what is typed on it, and the expected output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "situations.json"
NEVER = ("Traceback (most recent call last)", "Exception ignored")
"""What nobody may be shown, whatever is typed where."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True)
class Step:
    """What is typed, and what is expected of it.

    Args:
        type: the line.
        exit: its exit status.
        see: what its output has in it; line breaks and several blanks count as one blank.
        never: what its output has not in it, beside `NEVER`.
        seconds: after which it is taken to hang.
        interrupt: Ctrl-C is typed once this was seen.
        by: the user who types it; empty: the situation's.
    """

    type: str
    exit: int = 0
    see: Sequence[str] = ()
    never: Sequence[str] = ()
    seconds: float = 600.0
    interrupt: str = ""
    by: str = ""


@dataclass(frozen=True)
class Situation:
    """A machine and what is typed on it.

    Args:
        name: one word, for the table and the command line.
        tells: what the situation is, in a few words.
        steps: in turn; they end with the first that is not as expected.
        machine: the suite of Debian.
        packages: of Debian, that are installed there before.
        setup: whether `.venv` is there already, as `make setup` makes it.
        python: of this machine (`3.10`), mounted there and named by PYTHON; empty: the machine's own, if it has any.
        models: the environment of the model servers of this machine is mounted, and MODELS_DIR names it.
        options: of `docker run`.
        spoil: shell lines that root runs in the folder of the tree before anything is typed.
        user: who types; made where it is not root.
        tree: where the checkout is.
        environment: of what is typed.
        smoke: whether it is one of those for CI.
    """

    name: str
    tells: str
    steps: Sequence[Step]
    machine: str = "bookworm"
    packages: Sequence[str] = ()
    setup: bool = False
    python: str = ""
    models: bool = False
    options: Sequence[str] = ()
    spoil: Sequence[str] = ()
    user: str = "root"
    tree: str = "/srv/rewardstack"
    environment: dict[str, str] = field(default_factory=dict)
    smoke: bool = False


def load(path: Path = FILE) -> list[Situation]:
    """All situations of a file, in its order.

    Raises:
        TypeError: one has a field that there is not, or lacks one that there must be.
    """
    return [_situation(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def choose(situations: Sequence[Situation], names: Sequence[str], smoke: bool) -> list[Situation]:
    """Those that are asked for: by name, or by the first letters of several; without names all.

    Raises:
        ValueError: nothing is called so.
    """
    for name in names:
        if not any(situation.name.startswith(name) for situation in situations):
            raise ValueError(f"no situation is called {name}; there are {', '.join(s.name for s in situations)}")
    return [
        situation
        for situation in situations
        if (situation.smoke or not smoke) and (not names or situation.name.startswith(tuple(names)))
    ]


def fault(step: Step, status: int | None, output: str) -> str:
    """In what a step is not as expected; empty where it is.

    Args:
        step: that was typed.
        status: its exit status; None where it was taken to hang.
        output: all that a person saw of it.
    """
    if status is None:
        return f"no end after {step.seconds:.0f} s"
    if status != step.exit:
        return f"exit {status} instead of {step.exit}"
    seen = plain(output)
    for line in step.see:
        if plain(line) not in seen:
            return f"not seen: {line}"
    for line in (*NEVER, *step.never):
        if plain(line) in seen:
            return f"seen: {line}"
    return ""


def verdict(outcomes: Mapping[str, bool | None]) -> str:
    """The last line of the table.

    Args:
        outcomes: by a situation's name whether it was as expected, None where it was left out.
    """
    typed = [name for name, outcome in outcomes.items() if outcome is not None]
    words = [f"{sum(map(bool, outcomes.values()))} of {len(typed)} as expected"]
    words += [f"not {name}" for name in typed if not outcomes[name]]
    if len(typed) < len(outcomes):
        words.append(f"{len(outcomes) - len(typed)} left out")
    return f"VERDICT: {', '.join(words)}"


def plain(output: str) -> str:
    """Output without colours and cursor moves, and with one blank for any number of blanks and line breaks."""
    return " ".join(ESCAPES.sub("", output).split())


def _situation(steps: list[dict[str, Any]], **row: Any) -> Situation:
    return Situation(steps=[Step(**step) for step in steps], **row)
