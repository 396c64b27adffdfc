"""supervisord that outlives a full disk: what it cannot log is lost, and it goes on.

By itself it prints what went wrong to standard error, a file on the same disk, and ends by that; so it does where a log
file is full and cannot be closed.
"""

from __future__ import annotations

from supervisor import loggers, supervisord

_roll_over = loggers.RotatingFileHandler.doRollover


def main() -> None:
    """Be supervisord."""
    loggers.Handler.handleError = _lose
    loggers.RotatingFileHandler.doRollover = _roll_over_where_there_is_room
    supervisord.main()


def _lose(handler: loggers.Handler) -> None:
    """The line is lost."""


def _roll_over_where_there_is_room(handler: loggers.RotatingFileHandler) -> None:
    """Begin a new file where the one before is whole."""
    try:
        handler.stream.flush()
    except OSError:
        return
    _roll_over(handler)


if __name__ == "__main__":
    main()
