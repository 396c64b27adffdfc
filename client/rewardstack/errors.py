"""Every exception that rewardstack raises.

RewardstackError
├── ConfigError (ValueError)        a setting, a route or a request is wrong; the message names it and the remedy
│   ├── SettingsError               an environment variable or a `.env` value
│   ├── RouteError                  a route's definition, or two definitions of one route
│   │   └── UnknownSourceError      a `data_source` (or reward type) that no route takes; lists what is known
│   ├── RequestError                an argument or a field of a request
│   └── BudgetError                 what the run may spend on judges and embedding servers is spent
├── LoopError (RuntimeError)        a blocking call from the client's own event loop
├── ServiceError                    a service did not answer as it should: the infrastructure's fault
│   ├── DeadlineError               time ran out before an answer came
│   ├── UnreachableError            no connection, a connection that broke, or an endpoint that hangs
│   │   └── RefusedError            the connection was refused: nothing listens there
│   ├── OverloadError               the service refused for now (408, 425, 429, 502, 503, 504, 520 to 524, 529)
│   ├── RejectedError               the service refused for good (any other 4xx)
│   └── ReplyError                  an answer came, but an error (any other 5xx) or one that cannot be read
├── ScoringError                    a sample has no score and `on_error="raise"` was asked for; carries all scores
└── FailureRateError                more of the last samples failed than `REWARDSTACK_MAX_FAILURE_RATE` allows
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardstack.score import Score, Usage


class RewardstackError(Exception):
    """The root of the tree; each error survives pickling, on which Ray carries it, with all its fields."""

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class ConfigError(RewardstackError, ValueError):
    """Something the user wrote is wrong; `field` names it where one field is to blame."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class SettingsError(ConfigError):
    """An environment variable is missing, malformed or contradicts another."""


class RouteError(ConfigError):
    """A route is malformed, or defined twice."""


class UnknownSourceError(RouteError):
    """No route takes this `data_source`; the message lists what is known."""


class RequestError(ConfigError):
    """An argument or a field of a request has the wrong type or length."""


class BudgetError(ConfigError):
    """A run has spent what its settings let it spend on judges and embedding servers.

    Args:
        message: what is spent, and the remedy.
        field: the variable that says how much may be.
        scores: every score of the call, in the order of its requests; empty where the error concerns one of them.

    Where it concerns one of them, `usage` is what that one took before, None where nothing.
    """

    def __init__(self, message: str, field: str | None = None, scores: Sequence[Score] = ()) -> None:
        super().__init__(message, field)
        self.scores = list(scores)
        self.usage: Usage | None = None


class LoopError(RewardstackError, RuntimeError):
    """A blocking call was made from the client's own event loop, where it would wait for itself."""


class ServiceError(RewardstackError):
    """A service did not answer as it should."""


class DeadlineError(ServiceError):
    """Time ran out before an answer came."""


class UnreachableError(ServiceError):
    """No connection could be made, it broke, or the endpoint hangs."""


class RefusedError(UnreachableError):
    """The connection was refused, at once: nothing listens there."""


class OverloadError(ServiceError):
    """The service refused for now.

    Args:
        message: what was refused, and by whom.
        retry_after: seconds the service asked to wait, 0 where it named none.
        status: its HTTP status; 0 where there was no reply.
    """

    def __init__(self, message: str, retry_after: float = 0.0, status: int = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.status = status


class RejectedError(ServiceError):
    """The service refused for good.

    Args:
        message: the service's own words.
        status: its HTTP status.
        is_misplaced: whether another endpoint might take the request: the key, the path or the model is not this one's.
    """

    def __init__(self, message: str, status: int, *, is_misplaced: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.is_misplaced = is_misplaced


class ReplyError(ServiceError):
    """An answer came that is an error (5xx), or not what the protocol says.

    Args:
        message: what came, and from whom.
        status: its HTTP status, 0 where that is no error.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ScoringError(RewardstackError):
    """A sample has no score, and the caller asked for an exception rather than a substitute.

    Args:
        message: which sample, and why.
        scores: every score of the call, in the order of the requests.
    """

    def __init__(self, message: str, scores: Sequence[Score]) -> None:
        super().__init__(message)
        self.scores = list(scores)

    @classmethod
    def about(cls, at: int, scores: Sequence[Score]) -> ScoringError:
        """The error of a sample, by its position in the call."""
        return cls(f"sample {at}: {scores[at].status}: {scores[at].reason}", scores)


class FailureRateError(RewardstackError):
    """More of the last samples failed than `REWARDSTACK_MAX_FAILURE_RATE` allows; the run should end."""
