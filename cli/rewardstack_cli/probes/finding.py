"""The result of probing one address."""

from __future__ import annotations

from dataclasses import dataclass


class ProbeError(Exception):
    """A probe failed: the service does not do what it should.

    Args:
        what: what is wrong.
        remedy: how to fix it.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


@dataclass
class Finding:
    """The result of a probe of one address; if the probe failed, `version` and `sample` may be empty.

    Args:
        address: the service's URL without secrets, for display.
        version: version of the service, or the name of its model.
        sample: result of a test request, for display.
        problem: the problem; None if there is none.
    """

    address: str
    version: str = ""
    sample: str = ""
    problem: ProbeError | None = None
