"""Causes: why a sample has no score of its own. Errors and scores carry them from where they arise."""

from __future__ import annotations

from enum import Enum


class Cause(str, Enum):
    """The cause of a score whose status is not `ok`, and of an error.

    The value is the name in metrics and JSON. Unlike a reason, it never quotes a sample, a reply or a setting.

    Attributes:
        description: the cause in words, for people.
    """

    description: str

    def __new__(cls, name: str, description: str) -> Cause:
        """Return the member with this name and description."""
        member = str.__new__(cls, name)
        member._value_, member.description = name, description
        return member

    UNREACHABLE = "unreachable", "a server cannot be reached"
    TIMEOUT = "timeout", "no answer in time"
    OVERLOADED = "overloaded", "a server is overloaded"
    SERVER_ERROR = "server_error", "a server answers with an error"
    INVALID_REPLY = "invalid_reply", "a server's reply is invalid"
    REJECTED = "rejected", "a server refuses the request"
    REFUSED_KEY = "refused_key", "a server refuses the key"
    BUDGET = "budget", "the budget of the run is spent"
    CONFIGURATION = "configuration", "a setting or a route is wrong"
    INTERNAL_ERROR = "internal_error", "internal error (see the log)"

    JUDGE_REFUSED = "judge_refused", "the judge refused"
    JUDGE_TRUNCATED = "judge_truncated", "the judge's reply was truncated"
    NO_VERDICT = "no_verdict", "the judge's reply has no verdict"
    CONTEXT_LENGTH = "context_length", "the judge's context is too short"

    DEADLINE_PASSED = "deadline_passed", "the deadline had passed when the request arrived"
    CANCELLED = "cancelled", "the client had gone"
    SHUTDOWN = "shutdown", "the server was shutting down"
    ISOLATION_BUSY = "isolation_busy", "isolated processes are busy"
    ISOLATION_DOWN = "isolation_down", "isolated processes are unavailable"
    SANDBOX = "sandbox", "the sandbox for programs failed"
    WORKERS_ENDED = "workers_ended", "workers ended while they scored the sample"
    CORRUPT_JOB = "corrupt_job", "the sample or its result is corrupt in the queue"

    FUNCTION_RAISED = "function_raised", "the reward function raised an exception"
    FUNCTION_TIMEOUT = "function_timeout", "the reward function took too long"
    FUNCTION_DIED = "function_died", "the reward function's process died"
    FUNCTION_VALUE = "function_value", "the reward function gave no number in its range"
    FUNCTION_UNSCORED = "function_unscored", "the reward function gave no score"

    NO_REFERENCE = "no_reference", "the reference is missing"
    BAD_REFERENCE = "bad_reference", "the reference cannot be read"
    BAD_RESPONSE = "bad_response", "the response is malformed"
    BAD_OPTION = "bad_option", "an option in extra_info is wrong"
    BAD_REQUEST = "bad_request", "a field of the request is wrong"
    TOO_LONG = "too_long", "the sample is too long"
    GROUP = "group", "the group is incomplete or invalid"
    NO_PART = "no_part", "no part of a composite has a value"
    NOT_SENT = "not_sent", "the sample was not sent, because its route is stopped"

    OTHER = "other", "other reasons (see the log)"

    @classmethod
    def read(cls, value: object) -> Cause | None:
        """Return the cause that a peer sent; None for a value that is not a cause of this version."""
        return _CAUSES.get(value) if isinstance(value, str) else None


_CAUSES: dict[str, Cause] = {cause.value: cause for cause in Cause}
_FIELDS = {
    "ground_truth": Cause.BAD_REFERENCE,
    "solution_str": Cause.BAD_RESPONSE,
    "query": Cause.BAD_RESPONSE,
    "extra_info": Cause.BAD_OPTION,
}


def cause_of_field(field: str | None) -> Cause:
    """Return the cause of a request whose field, such as `extra_info.temperature`, is malformed."""
    return _FIELDS.get((field or "").partition(".")[0], Cause.BAD_REQUEST)
