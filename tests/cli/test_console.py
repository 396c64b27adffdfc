"""How tables and lines fit a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from rewardstack_cli import console
from rewardstack_cli.console import Grid
from rewardstack_cli.progress import format_rate
from services.stack.console import say
from services.stack.errors import COMMAND

ROWS = [
    ("reward server", "http://localhost:6000", "ok", "gsm8k: 1.0 in 4 ms"),
    ("LLM judge", "LLM_JUDGE_SERVER_URL is not set", "-", ""),
    (
        "embedding server",
        "http://embedding.example.com:8080",
        "FAILED",
        "similarity 0.986 / 0.484 in [b]41[/b] ms",
    ),
]
LINE = "rows without a score: 3; http://embedding.example.com:8080/v1/embeddings refuses them, see the log"
WIDTHS = [30, 60, 79, 80, 99, 120, 200]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, width: int) -> io.StringIO:
    """What is printed on a terminal of this width."""
    stream = Terminal()
    monkeypatch.setattr(console, "out", Console(file=stream, width=width, no_color=True, force_terminal=True))
    return stream


def words(text: str) -> list[str]:
    """Without frames and styles."""
    plain = Text.from_ansi(text).plain
    return [word for word in "".join(" " if mark in "│┃━┏┳┓┡╇┩─└┴┘" else mark for mark in plain).split() if word]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_breaks_no_word(shown: io.StringIO, width: int) -> None:
    """Whatever the width, every word, number and address is whole, and no frame is wider than the terminal."""
    grid = Grid("service", "address", "state", "sample")
    for row in ROWS:
        grid.add_row(*row)
    grid.show()
    said = words(shown.getvalue())
    for row in ROWS:
        assert [word for cell in row for word in cell.split() if word not in said] == []
    lines = Text.from_ansi(shown.getvalue()).plain.splitlines()
    framed = [line for line in lines if "│" in line or "━" in line]
    assert bool(framed) == (width >= 79)
    assert max(map(len, framed), default=0) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_a_line_is_broken_between_words(shown: io.StringIO, width: int) -> None:
    """On a terminal a line breaks between words; only a word that is longer than the line is left to the terminal."""
    console.put(Text(LINE), console.out)
    lines = Text.from_ansi(shown.getvalue()).plain.splitlines()
    assert " ".join(" ".join(line.split()) for line in lines) == LINE
    assert all(len(line.rstrip()) <= width or " " not in line.strip() for line in lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_line_keeps_its_margin(shown: io.StringIO, width: int) -> None:
    """What is broken off an indented line is indented as it is, and no line is wider than the terminal for it."""
    console.put(Text(f"    {LINE}"), console.out)
    lines = Text.from_ansi(shown.getvalue()).plain.splitlines()
    assert [line[:5].rstrip() for line in lines] == [f"    {line[4]}" for line in lines]
    assert all(len(line.rstrip()) <= width or " " not in line.strip() for line in lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_line_of_make_up(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """So with the lines of `make up`, but for what is to be copied; a pipe has each whole."""
    monkeypatch.setenv("COLUMNS", str(width))
    terminal, pipe = Terminal(), io.StringIO()
    say(f"==> {LINE}", terminal)
    lines = terminal.getvalue().splitlines()
    assert " ".join(" ".join(line.split()) for line in lines) == f"==> {LINE}"
    assert all(len(line) <= width or " " not in line.strip() for line in lines)
    say(f"  remedy:{COMMAND}{LINE}", terminal)
    assert terminal.getvalue().endswith(f"  remedy:{COMMAND}{LINE}\n")
    say(LINE, terminal, whole=True)
    say(LINE, pipe)
    assert terminal.getvalue().endswith(f"{LINE}\n") and pipe.getvalue() == f"{LINE}\n"


@pytest.mark.parametrize(
    ("rows", "seconds", "said"),
    [(12_345, 1.0, "12,345/s"), (12, 30.0, "0.4/s"), (3, 2.0, "1.5/s"), (0, 2.0, ""), (5, 0.0, "")],
)
def test_a_rate(rows: int, seconds: float, said: str) -> None:
    """A rate is never rounded to nothing, and is left out where there is none."""
    assert format_rate(rows, seconds) == said
