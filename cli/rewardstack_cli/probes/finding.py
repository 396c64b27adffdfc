"""What a probe has to say of one address."""

from __future__ import annotations

from dataclasses import dataclass


class Trouble(Exception):
    """Raised within a probe: the service does not do what it should.

    Args:
        what: is wrong.
        remedy: what to do about it.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


@dataclass
class Finding:
    """What was found out about one address, as far as the probe came.

    Args:
        address: for people's eyes.
        version: of the service.
        sample: what it made of a sample.
        trouble: what is wrong; None where nothing is.
    """

    address: str
    version: str = ""
    sample: str = ""
    trouble: Trouble | None = None
