"""Score a data file: check all rows of IN, score the rows that are not in OUT yet, and finish OUT.

IN is the input file. OUT is the output file: the same rows with their scores. A run can continue an interrupted run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

from rewardstack.errors import BudgetError, ConfigError, RequestError, RewardstackError, ScoringError
from rewardstack.score import Score, Usage
from rewardstack_cli.console import count_rows, err, printable, put, say
from rewardstack_cli.data import parquet
from rewardstack_cli.data.output import ScoreFile, row_digest
from rewardstack_cli.data.rows import SCORE_FIELDS, Row, input_fields, to_json
from rewardstack_cli.data.source import Source, check_output, is_parquet
from rewardstack_cli.failures import CHECK_HINT, NOT_SENT, to_correct
from rewardstack_cli.interrupts import Interrupts
from rewardstack_cli.options import Scoring
from rewardstack_cli.progress import NOT_ALL_SCORED, Tally, format_rate, progress_bar
from rewardstack_cli.provenance import IDENTITY_TIMEOUT, Provenance, ProvenanceFile, list_changes, merge

WriteScores = Callable[[list[Row], list[Score]], None]
"""Writes rows with their scores."""


class InputSummary(NamedTuple):
    """Summary of IN.

    Args:
        rows: number of rows.
        digest: digest of all rows if OUT is parquet; not used otherwise.
        sources: the `data_source` names in the rows.
    """

    rows: int
    digest: str
    sources: frozenset[str]


class Run:
    """Scores the rows of IN and writes them to OUT.

    Args:
        source: IN.
        output: OUT. A parquet OUT is written at the end, from the JSONL file `OUT.partial`.
        options: how to score the rows.

    Raises:
        RequestError: OUT is neither JSONL nor parquet, is IN itself or a folder, or is in a folder that does not exist.
    """

    def __init__(self, source: Source, output: Path, options: Scoring) -> None:
        self._source = source
        self._output = output
        self._options = options
        self._to_parquet = is_parquet(output, "-o")
        check_output(output, "-o")
        self._work_path = output.with_name(output.name + ".partial") if self._to_parquet else output
        if output.exists() and output.samefile(source.path):
            raise RequestError(f"-o: {output} is IN itself; name another file", "-o")
        self._provenance = ProvenanceFile(self._work_path)
        self._usage = Usage()
        self._scored = 0
        self._retry = self._start_over = False

    def execute(self, *, start_over: bool = False, retry: bool = False) -> int:
        """Score the rows that are not in OUT, and finish OUT.

        Args:
            start_over: whether to discard the scores in OUT.
            retry: whether to score again the rows in OUT whose status is `failed` or `unscored`.

        Returns:
            The exit status: 0 if every row has a score, else 3; 130 or 143 after an interruption.

        Raises:
            RewardstackError: the run failed; finished scores are in OUT, or in `OUT.partial` if OUT is parquet.
        """
        started = time.monotonic()
        self._retry, self._start_over = retry, start_over
        if self._to_parquet and self._output.exists() and not start_over and not self._work_path.exists():
            tally = self._read_finished_output()
            if not self._must_retry(tally):
                return self._finish(tally, started)
            self._restore_work_file()
        schema = parquet.infer_schema(self._parquet_rows()) if self._to_parquet else None
        with ScoreFile(self._work_path, row_digest if self._to_parquet else input_fields, start_over) as scores:
            summary = self._read_input(scores)
            before = scores.kept_rows
            if before:
                self._check_provenance(self._provenance.read(), summary)
            scores.truncate_incomplete_line()
            if not before:
                self._provenance.remove()
            has_work = before < summary.rows or self._must_retry(scores.tally)
            signal = self._score(scores, summary) if has_work else 0
            if scores.tally.rows < summary.rows or (signal and self._must_retry(scores.tally)):
                self._print_progress(scores, summary)
                return 128 + signal
            if schema is not None:
                origin = summary.digest, self._provenance.read()
                parquet.write(self._output, self._parquet_rows(), scores.read_scores(), schema, *origin)
                self._work_path.unlink()
                self._provenance.remove()
        return self._finish(scores.tally, started)

    def _must_retry(self, tally: Tally) -> bool:
        return self._retry and tally.without_score > 0

    def _restore_work_file(self) -> None:
        """Recreate `OUT.partial` from a complete parquet OUT, so that rows without a score can be retried."""
        _, provenance = parquet.read_origin(self._output)
        if provenance is not None:
            self._provenance.write(provenance)
        with self._work_path.open("wb") as work:
            for row, added in zip(self._source.rows(), parquet.read_added(self._output), strict=True):
                work.write(to_json({**row_digest(row.fields), **added}) + b"\n")

    def _parquet_rows(self) -> Any:
        return self._source.path if self._source.is_parquet else (row.fields for row in self._source.rows())

    def _read_input(self, scores: ScoreFile | None) -> InputSummary:
        """Validate all of IN, match its rows with the lines of `scores` (if not None), and return the summary of IN."""
        count = 0
        digest = blake2b(digest_size=20)
        sources = set()
        replaced_fields: set[str] = set()
        with err.status(f"reading {printable(str(self._source.path))}"):
            for row in self._source.rows():
                count += 1
                sources.add(self._options.request(row).data_source)
                replaced_fields.update(() if row.fields.keys() >= {*SCORE_FIELDS} else row.fields.keys() & SCORE_FIELDS)
                if scores is not None:
                    scores.match_next(row)
                if self._to_parquet:
                    digest.update(to_json(input_fields(row.fields)))
        if not count:
            raise self._source.no_rows_error()
        if replaced_fields:
            names = ", ".join(sorted(replaced_fields))
            say(
                f"{self._source.path} has the fields {names}, which OUT replaces by fields of the score; "
                "rename them in IN to keep their values"
            )
        return InputSummary(count, digest.hexdigest(), frozenset(sources))

    def _check_provenance(self, before: Provenance | None, summary: InputSummary) -> None:
        """Raise `RequestError` if routes, options, settings or services have changed since OUT was scored."""
        if before is None:
            say(
                f"{self._output} has no provenance record, so changes of routes or settings are not detected; "
                "if you made any, start over with --force"
            )
            return
        changed_values = list_changes(before, asyncio.run(self._options.provenance(summary.sources)))
        if changed_values:
            raise RequestError(
                f"{self._output} was scored differently: {'; '.join(changed_values)}; "
                "name another OUT, or start over with --force, which overwrites it",
                "-o",
            )

    async def _store_provenance(self, scores: ScoreFile, summary: InputSummary) -> None:
        """Store the provenance of all rows; do nothing if the provenance of earlier rows is unknown."""
        before = self._provenance.read() if scores.kept_rows else {}
        if before is not None:
            self._provenance.write(merge(before, await self._options.provenance(summary.sources)))

    def _read_finished_output(self) -> Tally:
        digest, provenance = parquet.read_origin(self._output)
        summary = self._read_input(None)
        if digest != summary.digest:
            raise RequestError(
                f"{self._output} exists and is not made from this IN; name another OUT, or overwrite it with --force",
                "-o",
            )
        self._check_provenance(provenance, summary)
        tally = Tally()
        for added in parquet.read_added(self._output):
            tally.add(**added)
        return tally

    def _score(self, scores: ScoreFile, summary: InputSummary) -> int:
        try:
            return asyncio.run(self._score_rows(scores, summary))
        except RewardstackError as error:
            self._print_progress(scores, summary, scores.tally.rows > 0 and _may_continue(error))
            if not scores.tally.rows:
                self._provenance.remove()
            raise

    async def _score_rows(self, scores: ScoreFile, summary: InputSummary) -> int:
        """Score the remaining rows, and return the number of the signal that interrupted the run; 0 if none did."""
        provenance_task = asyncio.create_task(self._store_provenance(scores, summary))
        with progress_bar() as bar, Interrupts() as interrupts:
            task = bar.add_task(
                "", total=summary.rows, completed=scores.kept_rows, before=scores.kept_rows, tally=scores.tally
            )

            async def score_pieces(rows: Iterator[Row], start: int, write: WriteScores) -> None:
                async with aclosing(self._options.pieces(rows, start, lambda: bool(interrupts.received))) as pieces:
                    async for piece in pieces:
                        write(piece.rows, piece.scores)
                        self._scored += len(piece.scores)
                        self._usage = Usage.total((self._usage, piece.usage))
                        bar.update(task, completed=scores.tally.rows)
                        if piece.error is not None:
                            raise piece.error

            try:
                try:
                    if self._must_retry(scores.tally):
                        with scores.rewrite() as rewriter:
                            await score_pieces(scores.rows_without_score(self._source.rows()), 0, rewriter.put)
                    await score_pieces(self._source.rows(scores.kept_rows), scores.kept_rows, scores.append)
                except RewardstackError:
                    await asyncio.wait([provenance_task], timeout=IDENTITY_TIMEOUT)
                    raise
                await provenance_task
            except asyncio.CancelledError:
                say("the rows in flight were dropped")
        return interrupts.received

    def _print_progress(self, scores: ScoreFile, summary: InputSummary, may_continue: bool = True) -> None:
        self._print_failures()
        command = "the same command without --force" if self._start_over else "the same command again"
        remedy = f"; run {command} to continue" if may_continue else ""
        where = f"in {self._work_path}" if scores.tally.rows or may_continue else "scored"
        say(f"{scores.tally.rows:,} of {summary.rows:,} rows are {where}{remedy} ({self._usage.summary})")

    def _finish(self, tally: Tally, started: float) -> int:
        seconds = time.monotonic() - started
        rate = format_rate(self._scored, seconds)
        details = "all were already scored"
        if self._scored:
            details = f"{self._scored:,} of them now, in {seconds:.1f} s ({rate}); {self._usage.summary}"
        put(Text(f"{printable(str(self._output))}: ").append_text(tally.summary()).append(f" ({details})"))
        self._print_failures()
        if not tally.without_score:
            return 0
        say(f"rows without a score: {tally.without_score:,}; their `reason` says why")
        for what, remedy in self._remedies().items():
            if tally.to_correct[what]:
                say(remedy.format(count_rows(tally.to_correct[what])))
        return NOT_ALL_SCORED

    def _remedies(self) -> dict[str, str]:
        """Return what to do about rows without a score, by what has to be corrected (`to_correct`)."""
        retry = start_over = "--force submits all rows as a new job"
        if self._options.rescores:
            instead = " instead of --force" if self._start_over else ""
            retry = f"the same command with --retry-failed{instead} scores only these rows again"
            start_over = "the same command with --force scores all rows again"
        return {
            "service": f"failed or not sent: {{}}; {CHECK_HINT}; {retry}",
            "function": f"failed in a reward function: {{}}; correct the function; then {start_over}",
            "data": f"unscored: {{}}; where `reason` names a field, correct IN; then {start_over}",
        }

    def _print_failures(self) -> None:
        for line in self._options.failures.lines():
            say(line)


def _may_continue(error: RewardstackError) -> bool:
    """Return whether the same command can continue after an error, without a correction of IN or of a setting."""
    if isinstance(error, ScoringError):
        failed = next(score for score in error.scores if score.value is None and score.source != NOT_SENT)
        return to_correct(failed.status, failed.cause) == "service"
    return isinstance(error, BudgetError) or not isinstance(error, ConfigError)
