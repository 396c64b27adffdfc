"""Map the reason of a score whose status is not `ok` to a cause from a small fixed list.

A reason is more detailed, and may quote a response, a judge or a request. A cause quotes nothing, so it can be a metric
label and be shown to everyone who can reach the server.
"""

from __future__ import annotations

import re

from rewardstack.score import NO_REFERENCE

OTHER = "other reasons (see the log)"
CAUSES = (
    ("the deadline had passed", "the deadline had passed when the request arrived"),
    ("isolated processes are busy", "isolated processes are busy"),
    ("all callers were cancelled", "the client had gone"),
    ("connection refused", "a server cannot be reached"),
    ("connection was not accepted", "a server cannot be reached"),
    ("host not found", "a server cannot be reached"),
    (" returned 5", "a server answers with an error"),
    ("failing fast until", "a server cannot be reached"),
    ("no answer in time", "no answer in time"),
    ("no answer within", "no answer in time"),
    ("no answer to ", "no answer in time"),
    ("no answer even to ", "no answer in time"),
    ("does not answer", "no answer in time"),
    ("connection was lost", "a server cannot be reached"),
    ("Connection reset", "a server cannot be reached"),
    ("disconnected", "a server cannot be reached"),
    ("No route to host", "a server cannot be reached"),
    ("is unreachable", "a server cannot be reached"),
    ("the sample took longer than", "the reward function took too long"),
    ("its process died", "the reward function's process died"),
    ("isolation supervisor", "isolated processes are unavailable"),
    ("supervisor of ", "isolated processes are unavailable"),
    ("shutting down", "the server was shutting down"),
    ("_API_KEY", "a server refuses the key"),
    ("REWARDSTACK_MAX_", "the budget of the run is spent"),
    ("MAX_MODEL_LEN", "the judge's context is too short"),
    (" returned 4", "a server refuses the request"),
    ("the server refuses", "a server refuses the request"),
    ("no verdict in the judge's reply: the judge refused", "the judge refused"),
    ("finish_reason content_filter", "the judge refused"),
    ("was truncated", "the judge's reply was truncated"),
    ("no verdict in the judge's reply", "the judge's reply has no verdict"),
    ("chat completion", "the judge's reply has no verdict"),
    (" returned 2", "a server's reply is invalid"),
    ("the judge's reply", "a server's reply is invalid"),
    ("the reply is ", "a server's reply is invalid"),
    ("the reply has ", "a server's reply is invalid"),
    ("its group", "the group is incomplete or invalid"),
    (NO_REFERENCE, "the reference is missing"),
    ("the reference has no", "the reference cannot be parsed"),
    ("the reference cannot be parsed", "the reference cannot be parsed"),
    ("no reference can be parsed", "the reference cannot be parsed"),
    ("ground_truth: missing", "the reference is missing"),
    ("ground_truth", "the reference is malformed"),
    ("solution_str", "the response is malformed"),
    ("extra_info", "an option in extra_info is wrong"),
    ("too long", "the sample is too long"),
    ("workers ended", "workers ended while they scored the sample"),
    ("not a finite number", "the reward function gave no number in its range"),
    (", outside its ", "the reward function gave no number in its range"),
    ("; return a number, a dict", "the reward function gave no number in its range"),
    ("gave no score", "the reward function gave no score"),
    ("no part", "no part of a composite has a value"),
)
"""Pairs of a text to find in a reason, and the cause that the text indicates. The first match is used."""
RAISED = re.compile(r"^[\w.-]{1,64} raised [A-Za-z_]")
"""Matches a reason that names the exception which a reward function raised."""
SEARCHED = 500
"""Number of characters at the start of a reason that are searched."""


def find_cause(reason: str) -> str:
    """Return the cause for a reason.

    Args:
        reason: the reason of a score whose status is not `ok`.
    """
    text = reason[:SEARCHED]
    if RAISED.match(text):
        return "the reward function raised an exception"
    return next((cause for part, cause in CAUSES if part in text), OTHER)
