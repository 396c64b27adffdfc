"""Run a table of cases as one test that lists every failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import indent

import pytest


class Table:
    """Collect the failures of a test's cases; `tests/conftest.py` reports them when the test ends."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._failures: list[tuple[str, Exception]] = []

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """Run one case; a failure is recorded, and the test continues with the next case.

        Args:
            name: the id of the case, unique within the test.
        """
        assert name not in self._names, f"two cases are named {name!r}"
        self._names.add(name)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever a case raises is its failure
            self._failures.append((name, error))
        except pytest.fail.Exception as error:
            self._failures.append((name, AssertionError(str(error))))

    def report(self) -> None:
        """Raise AssertionError if a case failed, with the id and message of each, or if there was no case."""
        __tracebackhide__ = True
        assert self._names, "the table has no cases"
        if self._failures:
            lines = [f"{name}: {indent(_message(error), '    ').lstrip()}" for name, error in self._failures]
            count = f"{len(self._failures)} of {len(self._names)} cases failed"
            raise AssertionError("\n".join([count, *lines])) from self._failures[0][1]


def _message(error: Exception) -> str:
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"


@pytest.fixture
def table() -> Table:
    """Return the table to which this test adds its cases with `Table.case`."""
    return Table()
