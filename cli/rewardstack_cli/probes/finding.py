"""The result of probing one address."""

from __future__ import annotations

from dataclasses import dataclass


class ProbeError(Exception):
    """A probe failed: the service does not do what it should.

    Args:
        what: what is wrong.
        remedy: what to do about it.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


@dataclass
class Finding:
    """What a probe found at one address; incomplete if the probe failed.

    Args:
        address: the service's URL without secrets, for display.
        version: version of the service, or the name of its model.
        sample: result of a test request, for display.
        problem: what is wrong; None if nothing is.
    """

    address: str
    version: str = ""
    sample: str = ""
    problem: ProbeError | None = None
