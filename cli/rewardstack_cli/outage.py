"""Stop a run when all rows fail, rather than spend the rest of it on failures."""

from __future__ import annotations

from rewardstack.errors import UnreachableError
from rewardstack_cli.pieces import Piece


class Outage:
    """Counts consecutive failures.

    Args:
        patience: number of consecutive failed rows that stops the run.
        remedy: end of the error message, which says what happens to the rows.
    """

    def __init__(self, patience: int, remedy: str) -> None:
        self._patience = patience
        self._remedy = remedy
        self._failed = 0

    def watch(self, piece: Piece) -> None:
        """Raise an error if the run should stop after this piece.

        Raises:
            UnreachableError: too many consecutive rows failed.
            RewardstackError: the error of the piece, if it has one.
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
