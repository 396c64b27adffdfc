"""All exceptions that rewardstack raises.

RewardstackError
├── ConfigError (ValueError)        a setting, a route or a request is invalid; the message names it and the remedy
│   ├── SettingsError               an environment variable or a `.env` value
│   ├── RouteError                  the definition of a route, judge or reward model is malformed or duplicated
│   │   └── UnknownSourceError      a `data_source` (or reward type) has no route; lists the known ones
│   ├── RequestError                an argument or a field of a request
│   └── BudgetError                 the run's budget for model servers is spent
├── LoopError (RuntimeError)        a blocking call from the client's own event loop, or a call at process exit
├── ServiceError                    an infrastructure failure: a service did not answer correctly
│   ├── DeadlineError               no valid answer came before the deadline
│   ├── UnreachableError            no connection, a lost connection, or an endpoint that hangs
│   │   └── RefusedError            the connection was refused
│   ├── OverloadError               a temporary error (408, 425, 429, 502, 503, 504, 520 to 524, 529)
│   ├── RejectedError               a final error (any other status below 500, or a spent quota or budget)
│   └── ReplyError                  an error (any other 5xx) or an invalid reply
├── ScoringError                    a sample has no score and `on_error` is `raise`; carries all scores
└── FailureRateError                more of the recent samples failed than `REWARDSTACK_MAX_FAILURE_RATE` allows
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from typing import Any

from rewardstack.cause import Cause, cause_of_field
from rewardstack.score import Score, Usage


class RewardstackError(Exception):
    """The base of all errors; pickling keeps all attributes, as Ray requires.

    Attributes:
        cause: why the request or sample failed; it stays the same where a caller writes another message.
    """

    cause = Cause.OTHER

    def __init__(self, *args: Any, cause: Cause | None = None) -> None:
        super().__init__(*args)
        if cause is not None:
            self.cause = cause

    def as_score(self, source: str = "") -> Score:
        """Return the score of a sample that raised this error: unscored for a RequestError, else failed."""
        return Score.failed(str(self), source, self.cause)

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class ConfigError(RewardstackError, ValueError):
    """Invalid user input; `field` names the invalid field if there is a single one."""

    cause = Cause.CONFIGURATION

    def __init__(self, message: str, field: str | None = None, *, cause: Cause | None = None) -> None:
        super().__init__(message, cause=cause)
        self.field = field


class SettingsError(ConfigError):
    """An environment variable is missing or malformed, or contradicts another variable."""


class RouteError(ConfigError):
    """The definition of a route, judge or reward model is malformed or duplicated, or its file cannot be read."""


class UnknownSourceError(RouteError):
    """No route matches a `data_source`; the message lists the known routes."""


class RequestError(ConfigError):
    """An argument or a field of a request is missing or invalid; the field decides the cause if none is given."""

    def __init__(self, message: str, field: str | None = None, *, cause: Cause | None = None) -> None:
        super().__init__(message, field, cause=cause or cause_of_field(field))

    def as_score(self, source: str = "") -> Score:
        """Return the score of a sample that raised this error."""
        return Score.unscored(str(self), source, self.field, self.cause)


class BudgetError(ConfigError):
    """A run has spent its budget for model servers: judges, reward models and embedding servers.

    Args:
        message: which budget is spent, and the remedy.
        field: the environment variable that sets the budget.
        scores: every score of the call, in request order; empty if the error is about a single sample.

    Attributes:
        usage: usage of the sample before the error, if the error is about a single sample; else None.
    """

    cause = Cause.BUDGET

    def __init__(self, message: str, field: str | None = None, scores: Sequence[Score] = ()) -> None:
        super().__init__(message, field)
        self.scores = list(scores)
        self.usage: Usage | None = None


class LoopError(RewardstackError, RuntimeError):
    """A call at process exit, or a blocking call from the client's own event loop, where it would deadlock."""


class ServiceError(RewardstackError):
    """A service did not answer correctly."""


class DeadlineError(ServiceError):
    """No valid answer came before the deadline."""

    cause = Cause.TIMEOUT


class UnreachableError(ServiceError):
    """The connection failed or was lost, or the endpoint hangs."""

    cause = Cause.UNREACHABLE


class RefusedError(UnreachableError):
    """The connection was refused: no server listens on the port."""


class OverloadError(ServiceError):
    """The request cannot be handled now: the service is overloaded, or this process has no free file descriptors.

    Args:
        message: the service and its error.
        retry_after: seconds in the Retry-After header; 0 for none.
        status: HTTP status; 0 if there was no reply.
        cause: the cause, if the reply has one.
    """

    cause = Cause.OVERLOADED

    def __init__(self, message: str, retry_after: float = 0.0, status: int = 0, *, cause: Cause | None = None) -> None:
        super().__init__(message, cause=cause)
        self.retry_after = retry_after
        self.status = status


_CAUSES_OF_REJECTIONS = {401: Cause.REFUSED_KEY, 403: Cause.REFUSED_KEY, 413: Cause.TOO_LONG}


class RejectedError(ServiceError):
    """The service rejected the request.

    Args:
        message: the service and its error.
        status: HTTP status.
        is_misplaced: whether an endpoint with another key, path or model may accept the request.
        complaint: the error message in the reply, shortened; empty if it has none.
        text: the body of the reply, up to 64 KiB.
        field: the invalid field of the request, or a setting of the server, as in the reply; empty if it has none.
        cause: the cause, if it is known; else the status decides it.
    """

    cause = Cause.REJECTED

    def __init__(
        self,
        message: str,
        status: int,
        *,
        cause: Cause | None = None,
        is_misplaced: bool = False,
        complaint: str = "",
        text: str = "",
        field: str = "",
    ) -> None:
        super().__init__(message, cause=cause or _CAUSES_OF_REJECTIONS.get(status))
        self.status = status
        self.is_misplaced = is_misplaced
        self.complaint = complaint
        self.text = text
        self.field = field


class ReplyError(ServiceError):
    """A reply is an error (5xx), or does not follow the protocol.

    Args:
        message: the service and its error.
        status: HTTP status of an error reply; 0 for an invalid reply.
        cause: the cause, if the status does not decide it.
    """

    cause = Cause.INVALID_REPLY

    def __init__(self, message: str, status: int = 0, *, cause: Cause | None = None) -> None:
        super().__init__(message, cause=cause or (Cause.SERVER_ERROR if status else None))
        self.status = status


class ScoringError(RewardstackError):
    """A sample has no score, and the error policy is `raise`.

    Args:
        message: which sample, and why.
        scores: every score of the call, in the order of the requests.
    """

    def __init__(self, message: str, scores: Sequence[Score]) -> None:
        super().__init__(message)
        self.scores = list(scores)

    @classmethod
    def about(cls, index: int, scores: Sequence[Score]) -> ScoringError:
        """Return an error about the sample at position `index` of the call."""
        return cls(f"sample {index}: {scores[index].status}: {scores[index].reason}", scores)


class FailureRateError(RewardstackError):
    """More of the recent samples failed than `REWARDSTACK_MAX_FAILURE_RATE` allows; the run should end."""
