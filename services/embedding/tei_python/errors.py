"""What goes wrong.

Exception
├── StartError            the server cannot start; the message names what is wrong and the remedy
└── TeiError              a request that TEI refuses, with its words
    ├── EmptyError        400: there is nothing to embed
    ├── ValidationError   422: too many inputs, too long a one, an unknown prompt
    ├── BackendError      424: the model failed
    ├── OverloadedError   429: as many inputs are under way as may be
    ├── UnhealthyError    503: the model failed and has not recovered
    └── ExpiredError      504: nobody waits any longer (not TEI's: it knows no deadlines)

Bodies that cannot be read raise `json_reader.BodyError`.
"""

from __future__ import annotations


class StartError(Exception):
    """The server cannot start."""


class TeiError(Exception):
    """A refusal; `kind` is TEI's error type.

    Args:
        message: TEI's words.
        failure: the `err` label under which TEI counts it; None for the usual one of its kind, empty for none.
    """

    status = 500
    kind = ""
    failure = ""

    def __init__(self, message: str, failure: str | None = None) -> None:
        super().__init__(message)
        if failure is not None:
            self.failure = failure


class EmptyError(TeiError):
    """There is nothing to embed."""

    status = 400
    kind = "Empty"
    failure = "validation"


class ValidationError(TeiError):
    """The request asks for what cannot be given."""

    status = 422
    kind = "Validation"
    failure = "tokenization"


class BackendError(TeiError):
    """The model failed."""

    status = 424
    kind = "Backend"
    failure = "inference"


class OverloadedError(TeiError):
    """As many inputs are under way as may be."""

    status = 429
    kind = "Overloaded"
    failure = "overloaded"


class UnhealthyError(TeiError):
    """The model failed, and fails."""

    status = 503
    kind = "Unhealthy"


class ExpiredError(TeiError):
    """The request's own deadline has passed."""

    status = 504
    kind = "Overloaded"
