"""Test the load: every sample has an outcome, or the load reports a fault."""

from __future__ import annotations

import pytest

from rewardstack import Request
from tests.support.load.lanes import Lane
from tests.support.load.load import Load, steady
from tests.support.load.outcomes import Known
from tests.support.servers import FaultServer, fault_server
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

TEXTS = ("a", "bb", "ccc", "dddd")
"""Responses; the fake server scores the length of a response."""
LANE = Lane("rules", "server", 0.02, 3, [Known(Request("math", text, "1"), float(len(text))) for text in TEXTS])


def ended(server: FaultServer) -> Load:
    """Run a load that the server refuses for a time (status 503), and return it after its end."""
    with steady([LANE], {"server": {"REWARD_SERVER_URL": server.url}}) as load:
        eventually(lambda: server.stats()["scored"] > len(TEXTS))
        server.set(mode="503")
        eventually(lambda: (seen := server.stats())["items"] > seen["scored"])
        server.set(mode="ok")
        load.end()
    return load


def test_all_come_back() -> None:
    """If a server refuses samples for a time, all of them have their right scores when the load has ended."""
    with fault_server() as server:
        load = ended(server)

    assert [] == load.faults
    assert load.sent == len(load.outcomes) > len(TEXTS)
    assert {("ok", False)} == {(one.status, one.is_wrong(LANE.samples)) for one in load.outcomes}


def test_wrong_scores_are_seen() -> None:
    """Scores that belong to other samples are wrong."""
    mixed = Lane("rules", "server", 0.02, 2, [*LANE.samples[1:], LANE.samples[0]])
    with fault_server() as server, steady([LANE], {"server": {"REWARD_SERVER_URL": server.url}}) as load:
        eventually(lambda: server.stats()["scored"])
        load.end()

    assert load.outcomes
    assert all(one.is_wrong(mixed.samples) for one in load.outcomes)


@pytest.mark.nightly
def test_a_trainer_that_dies_is_seen() -> None:
    """A trainer that ends before its samples have scores is reported as a fault."""
    with fault_server() as server, steady([LANE], {"server": {"REWARD_SERVER_URL": server.url}}) as load:
        eventually(lambda: server.stats()["scored"])
        load.kill()
        load.end()

    [fault] = load.faults
    assert "before its samples came back" in fault
