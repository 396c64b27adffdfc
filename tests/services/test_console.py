"""Console output: one line per step, plain where no terminal shows it."""

from __future__ import annotations

import io
import re

import pytest

from services.stack import console
from services.stack.errors import StackError


class Stream(io.TextIOWrapper):
    """An output of some encoding, which may be a terminal."""

    def __init__(self, encoding: str, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def text(self) -> str:
        """What was printed."""
        self.seek(0)
        return self.read()


def said(text: str, encoding: str = "utf-8", terminal: bool = False) -> str:
    """The output of `say`."""
    stream = Stream(encoding, terminal)
    console.say(text, stream)
    return stream.text


def test_step(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished step is one line with its time; one that fails prints no such line."""
    monkeypatch.setattr(console, "SLOW_SECONDS", 3600.0)
    with console.step("starting it", "started"):
        pass
    assert re.fullmatch(r"✓ started \(\d+\.\d s\)\n", capsys.readouterr().out)
    with pytest.raises(StackError), console.step("starting it"):
        raise StackError("it does not start")
    assert capsys.readouterr().out == ""


def test_slow_step(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that takes longer is announced before it ends."""
    monkeypatch.setattr(console, "SLOW_SECONDS", 0.0)
    announced = console.threading.Event()
    announce = console._announce

    def announcing(doing: str) -> None:
        announce(doing)
        announced.set()

    monkeypatch.setattr(console, "_announce", announcing)
    with console.step("starting it"):
        assert announced.wait(60)
        assert capsys.readouterr().out == "  starting it ...\n"


def test_ascii() -> None:
    """A stream that is not UTF-8 gets ASCII."""
    assert said("✓ done — now", "ascii") == "ok done - now\n"
    assert said("6000 → 7000", "latin-1") == "6000 -> 7000\n"


def test_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a terminal gets colors, and only where NO_COLOR is unset."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert said("✓ done") == "✓ done\n"
    assert said("✓ done", terminal=True) == "\x1b[32m✓\x1b[0m done\n"
    assert said("ERROR: it fails", terminal=True) == "\x1b[1;31mERROR:\x1b[0m it fails\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert said("✓ done", terminal=True) == "✓ done\n"
