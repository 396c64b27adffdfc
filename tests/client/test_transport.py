"""What a client sees of servers with faults: the scenarios of `tests/cases/transport.json` against real servers."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pytest

from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.errors import OverloadError, RefusedError, RejectedError, ReplyError, ServiceError
from rewardstack.transport.faults import Fault, fault_of
from rewardstack.transport.message import Message
from rewardstack.transport.recording import Recording, RecordingService
from rewardstack.transport.server import replica_key
from rewardstack.transport.servers import Servers
from tests.client import fault_table
from tests.support import scenarios
from tests.support.table import Table

SCENARIOS = scenarios.table()


def names(*, gateway: bool, quick: bool) -> list[str]:
    """The scenarios with a gateway or without, and those of `make test` or the others."""
    return [
        name
        for name, facts in SCENARIOS.items()
        if (facts["gateway"] is not None) == gateway and facts["quick"] == quick
    ]


def check(name: str) -> None:
    """Run a scenario, and fail if something does not hold of it."""
    wrong = scenarios.faults(SCENARIOS[name], scenarios.run(SCENARIOS[name]))
    assert not wrong, "; ".join(wrong)


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize("name", names(gateway=False, quick=True))
def test_scenario(name: str) -> None:
    """Enough samples are scored, with few enough requests."""
    check(name)


@pytest.mark.usefixtures("needs_nginx")
@pytest.mark.parametrize("name", names(gateway=True, quick=True))
def test_scenario_with_a_gateway(name: str) -> None:
    """The same behind the shipped gateway."""
    check(name)


@pytest.mark.nightly
@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize("name", names(gateway=False, quick=False))
def test_long_scenario(name: str) -> None:
    """The same of scenarios that take longer."""
    check(name)


@pytest.mark.nightly
@pytest.mark.usefixtures("needs_nginx")
@pytest.mark.parametrize("name", names(gateway=True, quick=False))
def test_long_scenario_with_a_gateway(name: str) -> None:
    """The same of scenarios that take longer behind the shipped gateway."""
    check(name)


def test_the_page_has_the_table() -> None:
    """The table of docs/performance.md is the one that `python -m tests.client.fault_table` writes."""
    assert fault_table.table() in fault_table.PAGE.read_text(encoding="utf-8")


ERRORS: dict[str, tuple[ServiceError, Fault]] = {
    "refused": (RefusedError("no"), Fault.DOWN),
    "502": (OverloadError("no", status=502), Fault.DOWN),
    "522": (OverloadError("no", status=522), Fault.DOWN),
    "503": (OverloadError("no", status=503), Fault.BUSY),
    "529": (OverloadError("no", status=529), Fault.BUSY),
    "no descriptors": (OverloadError("no"), Fault.BUSY),
    "408": (OverloadError("no", status=408), Fault.LATE),
    "500": (ReplyError("no", 500), Fault.INVALID),
    "unreadable": (ReplyError("no"), Fault.INVALID),
    "404": (RejectedError("no", 404, is_misplaced=True), Fault.MISPLACED),
    "400": (RejectedError("no", 400), Fault.REJECTED),
}


def test_faults(table: Table) -> None:
    """Each error shows one fault."""
    for name, (error, fault) in ERRORS.items():
        with table.case(name):
            assert fault_of(error) is fault


def test_replica_keys() -> None:
    """As nginx hashes them, keys of consecutive numbers select all replicas in turn, however many there are."""
    for count in range(1, 9):
        chosen = [(crc32(replica_key(number).encode()) >> 16 & 0x7FFF) % count for number in range(800, 900)]
        assert chosen == [number % count for number in range(800, 900)]


async def test_a_service_that_sends_nothing() -> None:
    """A recording service counts requests in place of sending them; its reply is read as a server's."""
    recording = Recording()
    service = RecordingService(recording, None, b"42")
    servers = Servers(["http://nowhere.invalid"], "", lambda _: service, 8, 3)
    message = Message("POST", "/v1/score", b"{}", read=int)
    found: list[Any] = [await servers.ask(message, SharedDeadline(Deadline(60))) for _ in range(3)]
    servers.close()
    assert found == [42] * 3
    assert [(one.method, one.path, one.sent) for one in recording.take()] == [("POST", "/v1/score", b"{}")] * 3
