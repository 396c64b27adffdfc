"""What goes wrong.

Exception
├── StartError            the server cannot start; the message names what is wrong and the remedy
└── TeiError              a request that is refused, with TEI's status and error type
    ├── BodyError         400, 413, 415, 422: the body is no JSON, or not what the route takes
    ├── EmptyError        400: there is nothing to embed
    ├── ValidationError   422: too many inputs, too long a one, an unknown prompt
    ├── BackendError      424: the model failed
    ├── OverloadedError   429: as many inputs are under way as may be
    ├── UnhealthyError    503: the model failed and has not recovered
    └── ExpiredError      504: nobody waits any longer (not TEI's: it knows no deadlines)
"""

from __future__ import annotations


class StartError(Exception):
    """The server cannot start."""


class TeiError(Exception):
    """A refusal; `kind` is TEI's error type.

    Args:
        message: names the field and the remedy.
        failure: the `err` label under which TEI counts it; None for the usual one of its kind, empty for none.
    """

    status = 500
    kind = ""
    failure = ""

    def __init__(self, message: str, failure: str | None = None) -> None:
        super().__init__(message)
        if failure is not None:
            self.failure = failure


class BodyError(TeiError):
    """The body cannot be read: 400 where it is no JSON, 413 and 415 where it is not even looked at, else 422."""

    kind = "Validation"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class EmptyError(TeiError):
    """There is nothing to embed."""

    status, kind, failure = 400, "Empty", "validation"


class ValidationError(TeiError):
    """The request asks for what cannot be given."""

    status, kind, failure = 422, "Validation", "tokenization"


class BackendError(TeiError):
    """The model failed."""

    status, kind, failure = 424, "Backend", "inference"


class OverloadedError(TeiError):
    """As many inputs are under way as may be."""

    status, kind, failure = 429, "Overloaded", "overloaded"


class UnhealthyError(TeiError):
    """The model failed, and fails."""

    status, kind = 503, "Unhealthy"


class ExpiredError(TeiError):
    """The request's own deadline has passed."""

    status, kind = 504, "Overloaded"
