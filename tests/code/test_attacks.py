"""Attacks reach nothing, ordinary programs work, and no program is paid for tampering with its tests."""

from __future__ import annotations

from typing import Any

import psutil
import pytest

from tests.code.cases import attack, in_batches, load, sample
from tests.code.unconfined import Bait
from tests.rules.conftest import RewardServer
from tests.support.table import Table
from tests.support.waiting import eventually

SMOKE = (
    *("fork", "exec", "read /etc/passwd", "network tcp", "unix socket abstract", "read parent's memory", "write /tmp"),
    *(
        "raise the memory limit",
        "x32 / 32-bit syscalls",
        "five thousand threads",
        "signal everybody",
        "outlive the parent",
    ),
    *(
        "expected output in this process' memory",
        "secret in environment",
        "leftover descriptors",
        "loop ignoring SIGTERM",
        "lower the CPU limit to nothing",
        "a timer that kills",
        "sleep uninterruptibly until a thread ends",
    ),
)
ASSERTS = [
    "assert add(2, 3) == 5",
    "assert add(2, 4) == 6",
    "assert abs(add(1, 2) - 3) < 1e-6",
    "assert sorted([add(2, 1), add(0, 1)]) == [1, 3]",
]


def check_attacks(server: RewardServer, bait: Bait, table: Table, rows: list[dict[str, Any]]) -> None:
    """Run attacks, and see that none works, leaves anything behind or harms the server."""
    pid = server.process.pid
    for batch in in_batches(rows, 16):
        scores = server.score(*(attack(row["source"], bait, pid) for row in batch))
        for row, score in zip(batch, scores, strict=True):
            with table.case(row["name"]):
                assert score["status"] == "ok", score["reason"]
                assert score["details"]["parts"]["passed"] == 0
    with table.case("nothing is touched"):
        assert bait.touched() == []
    with table.case("the server still answers"):
        assert server.score(sample("print(1)", {"inputs": [""], "outputs": ["1"]}))[0]["value"] == 1.0
    with table.case("no process is left"):
        eventually(lambda: not [one for one in psutil.process_iter(["cmdline"]) if "probe" in str(one.info["cmdline"])])


def test_attacks_smoke(server: RewardServer, bait: Bait, table: Table) -> None:
    """One attack of each kind is contained."""
    check_attacks(server, bait, table, [row for row in load("attacks", "more_attacks") if row["name"] in SMOKE])


@pytest.mark.nightly
def test_attacks(server: RewardServer, bait: Bait, table: Table) -> None:
    """Every attack is contained."""
    check_attacks(server, bait, table, load("attacks", "more_attacks"))


def check_ordinary(server: RewardServer, table: Table, rows: list[dict[str, Any]]) -> None:
    """Run programs that print 6 as their last word."""
    tests = {"inputs": ["3\n1 2 3\n"], "outputs": ["6"]}
    for batch in in_batches(rows, 16):
        scores = server.score(*(sample(row["source"], tests, compare="tokens") for row in batch))
        for row, score in zip(batch, scores, strict=True):
            with table.case(row["name"]):
                assert score["value"] == 1.0, score["reason"]


def ordinary(with_numpy: bool) -> list[dict[str, Any]]:
    """Return ordinary programs; one that prints more than 6 is another one's."""
    rows = [row for row in load("ordinary", "more_ordinary") if row["name"] != "locale/unicode out"]
    return [row for row in rows if ("numpy" in row["source"]) == with_numpy]


def test_ordinary_smoke(server: RewardServer, table: Table) -> None:
    """Every third ordinary program works."""
    check_ordinary(server, table, ordinary(with_numpy=False)[::3])


@pytest.mark.nightly
def test_ordinary(server: RewardServer, table: Table) -> None:
    """Ordinary programs work."""
    check_ordinary(server, table, ordinary(with_numpy=False))


def test_numpy(server: RewardServer, table: Table) -> None:
    """Programs with NumPy work where the interpreter has it."""
    pytest.importorskip("numpy")
    check_ordinary(server, table, ordinary(with_numpy=True))


def test_unicode(server: RewardServer) -> None:
    """What a program prints is read as UTF-8."""
    tests = {"inputs": [""], "outputs": ["é中\n6"]}
    assert server.score(sample("print('é中') or print(6)", tests))[0]["value"] == 1.0


def test_tampering(server: RewardServer, table: Table) -> None:
    """No program that tampers with its tests is paid; the honest one is."""
    rows = load("tampering", "more_tampering")
    limits = {"time_limit": 1}  # expires: some never end
    scores = server.score(
        *(sample(row["source"], ASSERTS, **({} if row["name"] == "right" else limits)) for row in rows)
    )
    for row, score in zip(rows, scores, strict=True):
        with table.case(row["name"]):
            assert score["status"] == "ok", score["reason"]
            assert score["value"] == float(row["name"] == "right")
