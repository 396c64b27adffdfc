"""What scoring a file costs: `--dry-run` announces it in advance, and the last line of a run reports it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from rewardstack.cache.key import PREFIX
from rewardstack.errors import BudgetError
from rewardstack.score import Score
from rewardstack_cli.data.rows import Row
from rewardstack_cli.pieces import score_in_order
from tests.client.judge.conftest import FAKE_JUDGE, JUDGE
from tests.support.servers import FaultServer, Redis
from tests.support.snippets import block

from .conftest import Cli
from .samples import read_jsonl, sample, write_jsonl


def judged(text: str, **extra: Any) -> dict[str, Any]:
    """A row for the judge."""
    info = {"problem": "p", "temperature": 0, **extra}
    return {"data_source": JUDGE, "solution_str": text, "ground_truth": "42", "extra_info": info}


@pytest.fixture
def judge(cli: Cli) -> Iterator[FaultServer]:
    """A judge that counts tokens, and of which the command knows; its reward server is nowhere."""
    one = FaultServer(script=FAKE_JUDGE)
    cli.variables |= {"LLM_JUDGE_SERVER_URL": one.url, "REWARD_SERVER_URL": "http://127.0.0.1:9"}
    one.set(usage={"prompt_tokens": 30, "completion_tokens": 4})
    yield one
    one.kill()


def test_cost_before_and_after(cli: Cli, judge: FaultServer, tmp_path: Path) -> None:
    """A dry run asks for no verdict and writes nothing; what it announces, the run then takes. A judge that counts no
    prompts has them estimated; a malformed row is counted."""
    rows = [judged("a"), judged("a"), judged("b", num_samples=2, temperature=1, max_new_tokens=10), sample(2)]
    write_jsonl(tmp_path / "in.jsonl", rows)
    dry = cli("score", "in.jsonl", "--dry-run")
    assert (0, 0) == (dry.status, judge.stats()["requests"])
    assert "4 rows: 0 malformed; at most 3 requests, " in dry.out
    assert "(prompt tokens counted by the judge); nothing was scored" in dry.out
    assert ["in.jsonl"] == [path.name for path in tmp_path.iterdir()]
    write_jsonl(tmp_path / "judged.jsonl", rows[:3])
    assert "; 3 requests, 90 prompt and 12 completion tokens" in cli("score", "judged.jsonl", "-o", "out.jsonl").out
    judge.set(refuse="/tokenize")
    write_jsonl(tmp_path / "wrong.jsonl", [judged("c"), {"data_source": "nobody's", "solution_str": "d"}])
    wrong = cli("score", "wrong.jsonl", "--dry-run")
    assert (3, True) == (wrong.status, "2 rows: 1 malformed; at most 1 request, " in wrong.out)
    assert "estimated from the length of the prompts" in wrong.out


def test_the_document(cli: Cli, judge: FaultServer, start_redis: Callable[..., Redis], tmp_path: Path) -> None:
    """By the commands of `docs/costs.md` a file is counted in advance, and a run then counts in its Redis; from then on
    it is said what is cached."""
    write_jsonl(tmp_path / "rollouts.jsonl", [judged("a")])
    cache = start_redis()
    dry = block("docs/costs.md", "bash", "rewardstack score")
    cap = block("docs/costs.md", "bash", "export").replace("redis://...", cache.url)
    score = dry.replace("--dry-run", "-o scored.jsonl")
    environment = cli.environment()
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    done = subprocess.run(
        ["bash", "-euc", dry + cap + score + dry],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 row: 0 malformed; at most 1 request, " in done.stdout
    assert "1 row: 1 cached, 0 malformed; no requests to models" in done.stdout
    [spent] = redis.Redis.from_url(cache.url).keys(f"{PREFIX}spent:*")
    assert redis.Redis.from_url(cache.url).hget(spent, "requests") == b"1"


async def test_what_stands_in_for_a_refused_part_is_not_kept() -> None:
    """A composite that goes without the part that the budget refused is scored again when the cap is raised."""
    rows = [Row(Path("in.jsonl"), str(at), {}) for at in range(3)]
    scores = [Score(1.0), Score(0.5, "fallback", "small: the budget is spent"), Score(1.0)]

    async def score(_: list[Row]) -> list[Score]:
        raise BudgetError("spent", scores=scores)

    [piece] = [one async for one in score_in_order(rows, score, 24, lambda: False)]
    assert scores[:1] == piece.scores and isinstance(piece.error, BudgetError)


def test_a_spent_budget_ends_a_run(cli: Cli, judge: FaultServer, tmp_path: Path) -> None:
    """OUT keeps the rows before the one that was refused; with a higher cap the same command continues from there."""
    write_jsonl(tmp_path / "in.jsonl", [judged("a"), judged("b"), judged("c")])
    cli.variables["REWARDSTACK_MAX_REQUESTS"] = "2"
    ended = cli("score", "in.jsonl", "-o", "out.jsonl", "--chunk-size", "8")
    assert (2, 2) == (ended.status, len(read_jsonl(tmp_path / "out.jsonl")))
    assert "REWARDSTACK_MAX_REQUESTS: this process has used 2 of 2 requests" in ended.err
    assert "2 of 3 rows are in out.jsonl; run the same command again to continue (2 requests, 60 prompt" in ended.err
    again = cli("score", "in.jsonl", "-o", "out.jsonl")
    assert (0, True) == (again.status, "; 1 request, 30 prompt and 4 completion tokens" in again.out)


def test_groups(cli: Cli, judge: FaultServer, tmp_path: Path) -> None:
    """A dry run shows the groups of a file and their requests; pieces of a file never divide a group."""
    judge.set(compares=True)
    routes = f'[judges.ruler]\nbase_url = "{judge.url}"\ncompare = "pairwise"\npairs = "circular"\n'
    (tmp_path / "routes.toml").write_text(routes)
    cli.variables |= {"REWARDSTACK_ROUTES": str(tmp_path / "routes.toml")}
    rows = [
        {
            "data_source": "ruler",
            "solution_str": f"It is {member}.",
            "ground_truth": None,
            "extra_info": {"problem": f"p{at}"},
        }
        for at in range(6)
        for member in range(3)
    ]
    write_jsonl(tmp_path / "in.jsonl", rows)
    dry = cli("score", "in.jsonl", "--dry-run", "--chunk-size", "8")
    assert "ruler: 6 groups, 6 requests each" in dry.out and judge.stats()["requests"] == 0
    done = cli("score", "in.jsonl", "-o", "out.jsonl", "--chunk-size", "8")
    assert 0 == done.status, done.out + done.err
    assert [0.4925, 0.5, 0.5075] * 6 == [round(one["value"], 6) for one in read_jsonl(tmp_path / "out.jsonl")]
    write_jsonl(tmp_path / "divided.jsonl", [*rows, rows[0]])
    divided = cli("score", "divided.jsonl", "-o", "divided.out.jsonl", "--chunk-size", "8")
    assert 0 != divided.status and "the members of a group are not consecutive" in divided.err
