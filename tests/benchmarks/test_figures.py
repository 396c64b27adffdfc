"""What benchmarks record, and the page and the picture that `make bench` makes of it."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.__main__ import PUBLISHED, run_all
from benchmarks.catalogue import FOLDER, SMALL, Benchmark, benchmark
from benchmarks.figures import FILE, figure, is_kept, read
from benchmarks.machine import machine
from benchmarks.page import page
from benchmarks.picture import picture
from benchmarks.plots import WIDTH, bars
from benchmarks.wording import bound, quantity, rival, times

CASES = json.loads((FOLDER.parent / "tests/cases/benchmarks.json").read_text(encoding="utf-8"))
HOSTILE = "</text></td><script>alert(1)</script> & \"'"
SCRIPT = f"""\"\"\"How much it is, against `nothing`.

    python {{name}}.py

It is said.
\"\"\"
import sys
sys.path.insert(0, {str(FOLDER.parent)!r})
from benchmarks.figures import figure
figure("answer", 42, "/s", against="a guess", ratio=2.5)
print("the answer is 42")
{{ending}}
"""


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where figures are added to."""
    path = tmp_path / "figures.jsonl"
    monkeypatch.setenv(FILE, str(path))
    return path


@pytest.mark.parametrize("case", CASES, ids=[case["what"] for case in CASES])
def test_words_of_a_figure(case: dict[str, Any], recorded: Path) -> None:
    """A figure is written down as it is told, and said with its unit, bound and ratio; it keeps its bounds or not."""
    figure(**case["figure"])
    (one,) = read(recorded)
    assert case["figure"].items() <= one.items()
    assert case["kept"] is is_kept(one)
    ratio = f"{times(one['ratio'])} {rival(one)}" if one["ratio"] else ""
    said = [quantity(one["value"], one["unit"]), bound(one), ratio]
    assert case["said"] == [text.replace("\N{NO-BREAK SPACE}", " ") for text in said]


def test_no_figures_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark that is run by itself records nothing; a number that is none is refused."""
    monkeypatch.delenv(FILE, raising=False)
    figure("answer", 42)
    assert read(tmp_path / "figures.jsonl") == []
    monkeypatch.setenv(FILE, str(tmp_path / "figures.jsonl"))
    with pytest.raises(ValueError, match="JSON compliant"):
        figure("answer", float("inf"))


@pytest.mark.parametrize("name", SMALL)
def test_catalogue(name: str) -> None:
    """Every benchmark of the catalogue is there, says what it measures, and knows the arguments that make it small."""
    one = benchmark(name)
    text = one.script.read_text(encoding="utf-8")
    assert one.about.endswith(".") and one.method and "figure(" in text
    assert [word for word in one.small if word.startswith("--") and f'"{word}"' not in text] == []


def test_page_and_picture(recorded: Path) -> None:
    """Page and picture are valid, load no script and no external resource, and show every figure and text."""
    for case in CASES:
        figure(**case["figure"])
    figure(HOSTILE, 1.5, HOSTILE, against=HOSTILE, ratio=1e-4, note=HOSTILE)
    beyond = _run("one", figures=read(recorded), state="failed", status=1)
    report = _report(beyond, _run("two", state="failed", status=3, said=[HOSTILE]))
    html, svg = page(report), picture(report)
    ElementTree.fromstring(svg)
    for drawing in re.findall("<svg.*?</svg>", html):
        ElementTree.fromstring(drawing)
    body = re.sub(r"<(!DOCTYPE|meta)[^>]*>", "", html)
    shown = "".join(ElementTree.fromstring(body).itertext())
    for one in read(recorded):
        assert one["name"] in shown and quantity(one["value"], one["unit"]) in shown and one["note"] in shown
        assert not one["ratio"] or times(one["ratio"]) in unescape(svg)
    unwrapped = re.sub("</text><text[^>]*>", " ", svg)
    assert "missed its bound: client, correct scores, pairs." in shown and f"{times(0.84)} missed" in svg
    assert "exit status 3" in shown and report["note"] in shown and "beside other work" in unwrapped
    for text in (html, svg):
        assert "<script" not in text
        assert not re.findall(r"(?:src|href)=\"(?!#)|url\(|@import", text)


@pytest.mark.parametrize("ratios", [[0.97, 1.03], [1.0], [28.0, 0.75], [1e-6, 1e6], [0.001], [400.0]])
def test_bars(ratios: list[float], recorded: Path) -> None:
    """Bars stay within the plot whatever their ratios, and the longest one does not fill the column of ratios."""
    for ratio in ratios:
        figure("one", 10, against="another", ratio=ratio, least=9)
    drawing, height = bars(read(recorded))
    boxes = [
        (float(x), float(x) + float(width))
        for x, width in re.findall(r'<rect x="([\d.-]+)".*?width="([\d.]+)"', drawing)
    ]
    assert len(boxes) == len(ratios) and height > 0
    assert all(0 <= left < right < WIDTH - 90 for left, right in boxes)
    assert ">1</text>" in drawing


def test_failing_benchmark(
    needs_process: None, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fails loses no figures, its own or another's: the page says what it said last, the exit status is 1."""
    monkeypatch.delenv(FILE, raising=False)
    endings = {"well": "", "fails": 'sys.exit("no <server>")', "late": ""}
    todo = [(_script(tmp_path, name, ending), ["--all"]) for name, ending in endings.items()]
    assert run_all(todo, "", tmp_path / "results") == 1
    runs = json.loads((tmp_path / "results/bench.json").read_text())["runs"]
    assert [(one["state"], one["status"], len(one["figures"])) for one in runs] == [
        ("done", 0, 1),
        ("failed", 1, 1),
        ("done", 0, 1),
    ]
    html = (tmp_path / "results/bench.html").read_text()
    assert "the answer is 42\nno &lt;server&gt;" in html and "2 done, 1 failed" in html
    assert "How much it is, against <code>nothing</code>." in html and "<p>It is said.</p>" in html
    assert "fails (failed, a small run)" in (tmp_path / "results/bench.svg").read_text()
    assert capfd.readouterr().out.count("the answer is 42") == 3
    assert run_all(todo[:1], "", tmp_path / "results") == 0


def test_left_out(needs_process: None, tmp_path: Path) -> None:
    """A benchmark that ends well without a figure is skipped, with the reason that it gave."""
    (tmp_path / "none.py").write_text('"""Nothing."""\nprint("skipped: no model")\n')
    assert run_all([(benchmark("none", tmp_path), [])], "", tmp_path) == 0
    assert "skipped" in (html := (tmp_path / "bench.html").read_text()) and "skipped: no model" in html


def test_machine_without_programs() -> None:
    """What the machine is can be said without git and Redis."""
    assert machine()["Redis"] == "none on the path" and all(machine().values())


def test_published_picture() -> None:
    """The picture on the page about performance is one that a run made of benchmarks that there are."""
    svg = PUBLISHED.read_text(encoding="utf-8")
    texts = [one.text or "" for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert all(any(word in text for text in texts) for word in (" cores, ", ", commit "))
    assert {*SMALL} & {text.partition(" ")[0] for text in texts}


def _script(folder: Path, name: str, ending: str) -> Benchmark:
    (folder / f"{name}.py").write_text(SCRIPT.format(name=name, ending=ending))
    return benchmark(name, folder)


def _report(*runs: dict[str, Any]) -> dict[str, Any]:
    note = f"beside other work {HOSTILE}"
    return {"when": "today", "commit": "abc", "machine": machine(), "note": note, "runs": list(runs)}


def _run(name: str, **fields: Any) -> dict[str, Any]:
    told = {"about": "How.", "method": ["So."], "arguments": "", "state": "done", "status": 0, "seconds": 1.0}
    return {"name": name, **told, "figures": [], "said": [], **fields}
