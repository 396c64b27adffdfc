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
    """What a probe found at one address; incomplete if it failed.

    Args:
        address: the URL as it is shown, without secrets.
        version: version of the service, or its model.
        sample: result for a sample.
        trouble: what is wrong; None if nothing is.
    """

    address: str
    version: str = ""
    sample: str = ""
    trouble: ProbeError | None = None
