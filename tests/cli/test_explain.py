"""`rewardstack explain`: the way of one sample, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.judge.conftest import FAKE_JUDGE
from tests.support.servers import FaultServer, Redis
from tests.support.snippets import assert_shown, block
from tests.support.table import Table

from .conftest import Cli
from .samples import sample, write_jsonl, write_parquet

MIXED = [{"route": "llm_judge_remote", "weight": 0.7}, {"route": "gsm8k", "weight": 0.3}]
ROUTES: dict[str, Any] = {
    "mixed": {"sum": MIXED},
    "skips": {"sum": MIXED, "on_part_error": "skip"},
    "zeroes": {"sum": MIXED, "on_part_error": "zero"},
    "minus": {"sum": [{"route": "gsm8k", "weight": -0.5}, {"route": "llm_judge_remote", "weight": 1}]},
    "gated": {"gate": {"route": "gsm8k", "at_least": 0.5}, "then": "mixed", "else": -1},
    "shaped": {"route": "llm_judge_remote", "scale": 3, "shift": -1, "clip": [-1, 0.4]},
    "votes": {"majority": ["gsm8k", "exact_match", "math"]},
    "tried": {"cascade": [{"route": "gsm8k", "at_least": 0.5}, {"route": "llm_judge_remote"}]},
    "nested": {"sum": [{"route": "gated", "weight": 2}, {"route": "shaped", "weight": 1}], "scale": 0.5},
}
ROUTES |= {f"alias{at}": {"route": "gsm8k"} for at in range(8)}
ROUTES["many"] = {"sum": [{"route": f"alias{at}", "weight": 1} for at in range(8)]}
FORMULAS = [
    ("mixed", "#### 3", "0.65 = 0.7 * 0.5 + 0.3 * 1.0"),
    ("mixed", "#### 4", "0.35 = 0.7 * 0.5 + 0.3 * 0.0"),
    ("minus", "#### 3", "0.0 = -0.5 * 1.0 + 1 * 0.5"),
    ("gated", "#### 3", "0.65 = mixed 0.65, because gsm8k 1.0 passes the gate (0.5)"),
    ("gated", "#### 4", "-1.0, because gsm8k 0.0 is below the gate (0.5)"),
    ("shaped", "#### 3", "0.4 = clip(3 * llm_judge_remote 0.5 - 1, -1, 0.4)"),
    ("votes", "#### 3", "1.0 = majority of 1.0, 0.0, 1.0"),
    ("tried", "#### 3", "1.0 = gsm8k 1.0"),
    ("tried", "#### 4", "0.5 = llm_judge_remote 0.5, as gsm8k 0.0 did not decide"),
    ("many", "#### 3", "8.0 = " + " + ".join(["1 * 1.0"] * 8)),
    ("nested", "#### 3", "0.85 = 0.5 * (2 * 0.65 + 1 * 0.4)"),
]
"""A route, a response, and the first line of the answer."""


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_row(scoring: Cli, tmp_path: Path, kind: str) -> None:
    """A row is counted from 1, and its steps and its score are printed; the reward server tells its own."""
    rows = [sample(2), sample(3), sample(4)]
    write = write_jsonl if kind == "jsonl" else write_parquet
    write(tmp_path / f"in.{kind}", rows)
    result = scoring("explain", f"in.{kind}", "--row", "2", "-v")
    assert result.status == 0, result.err
    for words in ("1 route", "references: 3", "answer: 4", "references as read: 3", "value: 0.0"):
        assert words in result.out


def test_the_answer_of_a_rule(scoring: Cli) -> None:
    """Value and reason come first, then the answer, where it stood, and the reference; no step is shown."""
    out = scoring("explain", "--data-source", "gsm8k", "--solution", "#### 4", "--ground-truth", "3").out.splitlines()
    assert out[:4] == [
        "0.0: wrong answer: 4, the reference is 3",
        "gsm8k (rule)",
        "    answer: 4 (found in ####)",
        "    references as read: 3",
    ]
    assert out[4].endswith("-v shows all steps, with prompts and replies")
    assert len(out) == 5


@pytest.fixture
def judge(scoring: Cli, tmp_path: Path) -> Iterator[FaultServer]:
    """A judge that gives 0.5, to which the command is pointed, and routes that combine it with rules."""
    server = FaultServer(script=FAKE_JUDGE)
    server.set(content="It is right in part.\nREWARD: 0.500")
    (tmp_path / "routes.json").write_text(json.dumps({"routes": ROUTES}))
    scoring.variables |= {"LLM_JUDGE_SERVER_URL": server.url, "REWARDSTACK_ROUTES": "routes.json"}
    yield server
    server.kill()


def explained(scoring: Cli, source: str, solution: str = "#### 3", *arguments: str) -> list[str]:
    """The lines that are printed, with `*` as the sign of multiplication."""
    sample = ("--solution", solution, "--ground-truth", "3", "--extra", '{"problem": "p"}')
    return plain(scoring("explain", "--data-source", source, *sample, *arguments).out).splitlines()


def plain(text: str) -> str:
    return text.replace("\N{MULTIPLICATION SIGN}", "*")


def test_formulas(scoring: Cli, judge: FaultServer, table: Table) -> None:
    """The first line is the value as a formula of the parts, and the whole answer fits on a screen."""
    for source, solution, formula in FORMULAS:
        with table.case(f"{source}, {solution}"):
            lines = explained(scoring, source, solution)
            assert lines[0] == formula
            assert len(lines) <= 23


def test_a_judge_in_a_sum(scoring: Cli, judge: FaultServer) -> None:
    """The judge's reply and what it used stand by its part, and the judge is asked once."""
    lines = explained(scoring, "mixed")
    assert lines[1:4] == [
        "mixed (sum)",
        "  llm_judge_remote (judge): 0.5",
        "      reply: It is right in part. REWARD: 0.500",
    ]
    assert judge.stats()["requests"] == 1
    verbose = explained(scoring, "mixed", "#### 3", "-v")
    assert (verbose[0], verbose[-1].strip()) == (lines[0], "gsm8k: 1.0")
    assert len(verbose) > 100


def test_two_judges(scoring: Cli, judge: FaultServer, tmp_path: Path) -> None:
    """Parts are scored at the same time, and the reply of each judge stands by its own part."""
    names = ("one", "two", "three")
    judges = {name: {"base_url": judge.url, "model": name} for name in names}
    both = {"sum": [{"route": name, "weight": 1} for name in names]}
    (tmp_path / "routes.json").write_text(json.dumps({"judges": judges, "routes": {"both": both}}))
    judge.set(by_model={name: f"By {name}.\nREWARD: 0.{at}00" for at, name in enumerate(names, 1)}, together=3)
    lines = explained(scoring, "both")
    assert lines[0] == "0.6 = 1 * 0.1 + 1 * 0.2 + 1 * 0.3"
    for at, name in enumerate(names, 1):
        place = lines.index(f"  {name} (judge): 0.{at}")
        assert lines[place + 1] == f"      reply: By {name}. REWARD: 0.{at}00"


@pytest.mark.parametrize("arguments", [(), pytest.param(("--timeout", "5"), marks=pytest.mark.nightly)])  # expires
def test_a_judge_that_is_away(scoring: Cli, judge: FaultServer, arguments: tuple[str, ...]) -> None:
    """What could not be scored is named in the formula, with its reason below; the parts that were scored are shown."""
    judge.kill()
    if not arguments:
        scoring.variables["LLM_JUDGE_SERVER_REFUSED_TIMEOUT"] = "0.5"  # expires
    formula = "no score (failed): 0.7 * llm_judge_remote + 0.3 * 1.0; the reward is 0.0 (on_error = zero)"
    lines = explained(scoring, "mixed", "#### 3", *arguments)
    assert lines[0] == formula
    [why] = [line for line in lines if "llm_judge_remote (judge): no score (failed): " in line]
    assert f"{judge.url}/v1/models: connection refused" in why
    assert "  gsm8k (rule): 1.0" in lines
    assert "`rewardstack check` checks the services" in lines


def test_every_service_is_away(scoring: Cli, judge: FaultServer) -> None:
    """Each part has its own reason."""
    judge.kill()
    for service in ("LLM_JUDGE_SERVER", "REWARD_SERVER"):
        scoring.variables[f"{service}_REFUSED_TIMEOUT"] = "0.5"  # expires
    scoring.variables["REWARD_SERVER_URL"] = "http://127.0.0.1:9"
    lines = explained(scoring, "mixed")
    assert lines[0].startswith("no score (failed): 0.7 * llm_judge_remote + 0.3 * gsm8k; the reward is 0.0")
    for part, url in {"llm_judge_remote (judge)": judge.url, "gsm8k (rule)": "http://127.0.0.1:9"}.items():
        [why] = [line for line in lines if line.startswith(f"  {part}: no score (failed): ")]
        assert f"{url}/v1/" in why


def test_a_part_that_is_skipped(scoring: Cli, judge: FaultServer) -> None:
    """A part that is left out, or counts as 0, is so in the formula."""
    judge.kill()
    scoring.variables["LLM_JUDGE_SERVER_REFUSED_TIMEOUT"] = "0.5"  # expires
    for source, formula in {
        "skips": "1.0 = (0.3 * 1.0) * 1 / 0.3 (fallback)",
        "zeroes": "0.3 = 0.7 * 0.0 (llm_judge_remote failed) + 0.3 * 1.0 (fallback)",
    }.items():
        assert explained(scoring, source)[0] == formula


def test_a_cached_score(scoring: Cli, judge: FaultServer, start_redis: Callable[..., Redis], tmp_path: Path) -> None:
    """A score that the cache has is not computed again, unless with `--no-cache`."""
    scoring.variables |= {"REWARD_CACHE_URL": start_redis().url}
    row = {"data_source": "mixed", "solution_str": "#### 3", "ground_truth": "3"}
    write_jsonl(tmp_path / "in.jsonl", [{**row, "extra_info": {"problem": "p", "temperature": 0}}])
    assert scoring("score", "in.jsonl", "-o", "out.jsonl").status == 0
    for arguments, asked in (((), 1), (("--no-cache",), 2)):
        out = plain(scoring("explain", "in.jsonl", "--row", "1", *arguments).out)
        assert out.startswith("0.65 = 0.7 * 0.5 + 0.3 * 1.0\n")
        assert judge.stats()["requests"] == asked
        assert ("llm_judge_remote (judge): 0.5, from the cache; --no-cache scores it again" in out) == (asked == 1)


def test_the_document_shows_what_is_printed(scoring: Cli, tmp_path: Path) -> None:
    """The way of a sample in `docs/runbook.md` is what the command above it prints, some lines left out."""
    command, shown = block("docs/runbook.md", "", "$ rewardstack").split("\n", 1)
    text = "There are two roots.\nTheir sum is $2x + 1$, so the answer is \\boxed{2x+1}."
    write_jsonl(
        tmp_path / "rollouts.jsonl", [{"data_source": "math", "solution_str": text, "ground_truth": ["2(x+1)", ""]}]
    )
    printed = scoring(*command.split()[2:]).out
    assert_shown(shown, printed, r"http://\S+|\d+\.\d+(?= [a-z])")


def test_a_sample_on_the_command_line(scoring: Cli) -> None:
    """A sample needs no file; programs get JSON."""
    result = scoring(
        *("explain", "--json", "--data-source", "gsm8k", "--solution", "so 42"),
        *("--ground-truth", "41", "--ground-truth", "42", "--extra", '{"method": "flexible"}'),
    )
    found = json.loads(result.out)
    assert (result.status, found["score"]["value"], found["error"]) == (0, 1.0, "")
    assert [step["step"] for step in found["steps"]][:3] == ["route", "request", "prepared"]


@pytest.mark.parametrize("arguments", [(), ("-v",)])
def test_what_steers_a_terminal(scoring: Cli, arguments: tuple[str, ...]) -> None:
    """Neither control characters nor markup of a sample reach the terminal."""
    solution = "\\boxed{a\x1b[31m[bold]}"
    result = scoring("explain", "--data-source", "math", "--solution", solution, "--ground-truth", "42", *arguments)
    assert "\x1b" not in result.out and "[bold]" in result.out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--data-source", "gsm8k", "--solution", "x", "--ground-truth", "none"], 1, "the reference has no number"),
        (["--data-source", "nothing", "--solution", "x"], 2, "has no route"),
        ([], 2, "give one sample"),
        (["--data-source", "gsm8k", "--solution", "x", "--extra", '{"metod": 1}'], 1, "mean extra_info.method?"),
        (["--solution", "x"], 2, "--solution needs --data-source NAME"),
        (["in.jsonl"], 2, "needs --row N"),
        (["in.jsonl", "--row", "9"], 2, "fewer than 9 rows"),
        (["--data-source", "gsm8k", "--solution", "x", "--extra", "{"], 2, "--extra: not JSON"),
        (
            ["--data-source", "gsm8k", "--solution", "x", "--extra", "[]"],
            2,
            "--extra: expected a JSON object",
        ),
        (["--data-source", "gsm8k", "--solution", "x", "--row", "1"], 2, "--row needs IN"),
    ],
)
def test_exit_status(scoring: Cli, tmp_path: Path, arguments: list[str], status: int, words: str) -> None:
    """0 where there is a score, 1 where there is none, 2 where the sample is wrong; and why."""
    write_jsonl(tmp_path / "in.jsonl", [sample(2)])
    result = scoring("explain", *arguments)
    assert (result.status, words in result.out + result.err) == (status, True), result
