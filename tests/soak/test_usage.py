"""The verdict on what the services take: what counts as growth."""

from __future__ import annotations

import pytest

from tests.soak.usage import MIB, Usage, faults

BEFORE = {"rules": Usage(3, 60, 120 * MIB), "cache": Usage(1, 8, 3 * MIB), "all": Usage(24, 230, 600 * MIB)}


@pytest.mark.parametrize(
    ("name", "after", "memory", "expected"),
    [
        ("rules", Usage(3, 66, 131 * MIB), True, []),
        ("rules", Usage(3, 60, 133 * MIB), True, ["120 MiB became 133 MiB"]),
        ("rules", Usage(3, 60, 133 * MIB), False, []),
        ("rules", Usage(3, 60, 90 * MIB), True, []),
        ("rules", Usage(3, 77, 120 * MIB), False, ["60 open files became 77"]),
        ("rules", Usage(4, 60, 120 * MIB), False, ["3 processes became 4"]),
        ("rules", Usage(2, 60, 120 * MIB), False, ["3 processes became 2"]),
        ("cache", Usage(1, 24, 10 * MIB), True, []),
        ("cache", Usage(1, 25, 12 * MIB), True, ["8 open files became 25", "3 MiB became 12 MiB"]),
        ("all", Usage(24, 230, 659 * MIB), True, []),
        ("all", Usage(26, 230, 661 * MIB), True, ["600 MiB became 661 MiB"]),
        ("all", Usage(27, 230, 600 * MIB), True, ["24 processes became 27"]),
        ("unrelated processes", Usage(1, 3, MIB), True, ["0 processes became 1"]),
    ],
)
def test_faults(name: str, after: Usage, memory: bool, expected: list[str]) -> None:
    """A tenth is borne, and of little a little more; less memory always, fewer processes or files not."""
    found = faults(BEFORE, {**BEFORE, name: after}, memory=memory)

    assert [f"{name}: {fault}" for fault in expected] == list(found)


def test_a_service_that_is_gone() -> None:
    """A service without a process is a fault."""
    assert "cache: 1 processes became 0" in list(faults(BEFORE, {**BEFORE, "cache": Usage()}, memory=False))
