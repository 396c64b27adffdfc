"""The end of a run in which nothing succeeds any more, so that its rest is not spent on failures."""

from __future__ import annotations

from rewardstack.errors import UnreachableError
from rewardstack_cli.pieces import Piece


class Outage:
    """Looks at the scores as they come.

    Args:
        patience: rows that may all fail, one after the other.
        remedy: what is said of the rows, in a clause.
    """

    def __init__(self, patience: int, remedy: str) -> None:
        self._patience = patience
        self._remedy = remedy
        self._failed = 0

    def watch(self, piece: Piece) -> None:
        """Returns where the run may go on.

        Raises:
            UnreachableError: too many rows failed, one after the other.
            RewardstackError: that of the piece, if it has one.
        """
        if piece.error is not None:
            raise piece.error
        for score in piece.scores:
            self._failed = self._failed + 1 if score.status == "failed" else 0
        if self._failed >= self._patience:
            raise UnreachableError(
                f"the last {self._failed:,} rows all failed: {piece.scores[-1].reason}; see `rewardstack check`; "
                f"{self._remedy}"
            )
