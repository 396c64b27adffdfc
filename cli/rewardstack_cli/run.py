"""One run over a data file: check all rows of IN, keep the scores that OUT has, score the rest, finish OUT.

IN is the input file, OUT the output file: the same rows with their scores. A run can continue an interrupted run.
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

from rewardstack.errors import RequestError, RewardstackError
from rewardstack.score import Score, Usage
from rewardstack_cli.console import err, printable, put, say
from rewardstack_cli.data import parquet
from rewardstack_cli.data.output import ScoreFile, digest_of
from rewardstack_cli.data.rows import ADDED, Row, own_fields, to_json
from rewardstack_cli.data.source import Source, is_parquet
from rewardstack_cli.interrupts import Interrupts
from rewardstack_cli.options import Scoring
from rewardstack_cli.progress import NOT_ALL_SCORED, Tally, progress_bar, rate
from rewardstack_cli.provenance import ASKING_SECONDS, Provenance, ProvenanceFile, changes, merged

Keep = Callable[[list[Row], list[Score]], None]
"""Writes rows with their scores."""


class InputSummary(NamedTuple):
    """Summary of IN.

    Args:
        rows: number of rows.
        digest: digest of all rows if OUT is parquet; else of no rows.
        sources: the `data_source` names in the rows.
    """

    rows: int
    digest: str
    sources: frozenset[str]


class Run:
    """Scores IN into OUT.

    Args:
        source: IN.
        output: OUT; JSONL grows row by row, parquet is written at the end from a JSONL file next to it.
        options: how to score the rows.

    Raises:
        RequestError: OUT is neither JSONL nor parquet, or is IN itself.
    """

    def __init__(self, source: Source, output: Path, options: Scoring) -> None:
        self._source = source
        self._output = output
        self._options = options
        self._to_parquet = is_parquet(output, "-o")
        self._work = output.with_name(output.name + ".partial") if self._to_parquet else output
        if output.exists() and output.samefile(source.path):
            raise RequestError(f"-o: {output} is IN itself; name another file", "-o")
        self._provenance = ProvenanceFile(self._work)
        self._usage = Usage()
        self._scored = 0
        self._retry = False

    def execute(self, *, start_over: bool = False, retry: bool = False) -> int:
        """Score the rows that OUT lacks, and finish OUT.

        Args:
            start_over: whether to discard the scores in OUT.
            retry: whether to score rows of OUT again that failed or are unscored.

        Returns:
            The exit status.

        Raises:
            RewardstackError: the run failed; finished scores are in OUT, or in the file next to it.
        """
        started = time.monotonic()
        self._retry = retry
        if self._to_parquet and self._output.exists() and not start_over and not self._work.exists():
            tally = self._already_scored()
            if not self._retries(tally):
                return self._conclude(tally, started)
            self._unpack()
        schema = parquet.schema_of(self._parquet_rows()) if self._to_parquet else None
        with ScoreFile(self._work, digest_of if self._to_parquet else own_fields, start_over) as scores:
            summary = self._check(scores)
            before = scores.kept
            if before:
                self._compare(self._provenance.read(), summary)
            scores.resume()
            if not before:
                self._provenance.remove()
            received = self._score(scores, summary) if before < summary.rows or self._retries(scores.tally) else 0
            if scores.tally.rows < summary.rows or (received and self._retries(scores.tally)):
                self._tell_progress(scores, summary)
                return 128 + received
            if schema is not None:
                made_by = self._provenance.read()
                parquet.write(self._output, self._parquet_rows(), scores.added(), schema, summary.digest, made_by)
                self._work.unlink()
                self._provenance.remove()
        return self._conclude(scores.tally, started)

    def _retries(self, tally: Tally) -> bool:
        return self._retry and tally.without_score > 0

    def _unpack(self) -> None:
        """Write the lines of a complete parquet OUT to the work file, so that some rows can be scored again."""
        _, provenance = parquet.stored_origin(self._output)
        if provenance is not None:
            self._provenance.write(provenance)
        with self._work.open("wb") as work:
            for row, added in zip(self._source.rows(), parquet.read_added(self._output), strict=True):
                work.write(to_json({**digest_of(row.fields), **added}) + b"\n")

    def _parquet_rows(self) -> Any:
        return self._source.path if self._source.is_parquet else (row.fields for row in self._source.rows())

    def _check(self, scores: ScoreFile | None) -> InputSummary:
        """Read and validate all of IN before anything is scored."""
        count = 0
        digest = blake2b(digest_size=20)
        sources = set()
        replaced: set[str] = set()
        with err.status(f"reading {printable(str(self._source.path))}"):
            for row in self._source.rows():
                count += 1
                sources.add(self._options.request(row).data_source)
                replaced.update(() if row.fields.keys() >= {*ADDED} else row.fields.keys() & ADDED)
                if scores is not None:
                    scores.compare(row)
                if self._to_parquet:
                    digest.update(to_json(own_fields(row.fields)))
        if replaced:
            names = ", ".join(sorted(replaced))
            say(f"{self._source.path} has the fields {names}, which a score's replace in OUT; rename them to keep them")
        return InputSummary(count, digest.hexdigest(), frozenset(sources))

    def _compare(self, before: Provenance | None, summary: InputSummary) -> None:
        """Raise `RequestError` if OUT was scored with other routes, options, settings or services than now.

        Raises:
            RequestError: routes, options, settings or services have changed.
        """
        if before is None:
            say(f"{self._output} does not say how it was scored: if routes or settings have changed, use --force")
            return
        changed = changes(before, asyncio.run(self._options.provenance(summary.sources)))
        if changed:
            raise RequestError(
                f"{self._output} was scored differently: {'; '.join(changed)}; "
                "name another OUT, or start over with --force, which overwrites it",
                "-o",
            )

    async def _note(self, scores: ScoreFile, summary: InputSummary) -> None:
        """Store the provenance of the next rows, merged with that of earlier rows; do nothing if that is unknown."""
        before = self._provenance.read() if scores.kept else {}
        if before is not None:
            self._provenance.write(merged(before, await self._options.provenance(summary.sources)))

    def _already_scored(self) -> Tally:
        digest, provenance = parquet.stored_origin(self._output)
        summary = self._check(None)
        if digest != summary.digest:
            raise RequestError(
                f"{self._output} exists and is not made from this IN; name another OUT, or overwrite it with --force",
                "-o",
            )
        self._compare(provenance, summary)
        tally = Tally()
        for added in parquet.read_added(self._output):
            tally.add(**added)
        return tally

    def _score(self, scores: ScoreFile, summary: InputSummary) -> int:
        try:
            return asyncio.run(self._score_rows(scores, summary))
        except RewardstackError:
            self._tell_progress(scores, summary)
            raise

    async def _score_rows(self, scores: ScoreFile, summary: InputSummary) -> int:
        """Score the remaining rows; return the signal that interrupted the run, 0 for none."""
        noting = asyncio.create_task(self._note(scores, summary))
        with progress_bar() as bar, Interrupts() as interrupts:
            task = bar.add_task("", total=summary.rows, completed=scores.kept, before=scores.kept, tally=scores.tally)

            async def take(rows: Iterator[Row], start: int, keep: Keep) -> None:
                async with aclosing(self._options.pieces(rows, start, lambda: bool(interrupts.received))) as pieces:
                    async for piece in pieces:
                        keep(piece.rows, piece.scores)
                        self._scored += len(piece.scores)
                        self._usage = Usage.total((self._usage, piece.usage))
                        bar.update(task, completed=scores.tally.rows)
                        if piece.error is not None:
                            raise piece.error

            try:
                try:
                    if self._retries(scores.tally):
                        with scores.rewriting() as rewriter:
                            await take(scores.rows_without_score(self._source.rows()), 0, rewriter.put)
                    await take(self._source.rows(scores.kept), scores.kept, scores.append)
                except RewardstackError:
                    await asyncio.wait([noting], timeout=ASKING_SECONDS)
                    raise
                await noting
            except asyncio.CancelledError:
                say("the rows in flight were dropped")
        return interrupts.received

    def _tell_progress(self, scores: ScoreFile, summary: InputSummary) -> None:
        self._tell_failures()
        say(
            f"{scores.tally.rows:,} of {summary.rows:,} rows are in {self._work}; the same command "
            f"continues from there ({self._usage.summary})"
        )

    def _conclude(self, tally: Tally, started: float) -> int:
        seconds = time.monotonic() - started
        now = f"{self._scored:,} of them now, in {seconds:.1f} s ({rate(self._scored, seconds)}); {self._usage.summary}"
        pace = now if self._scored else "all were already scored"
        put(Text(f"{printable(str(self._output))}: ").append_text(tally.summary()).append(f" ({pace})"))
        self._tell_failures()
        if not tally.without_score:
            return 0
        remedy = "--force submits all rows as a new job"
        if self._options.rescores:
            remedy = "the same command with --retry-failed scores only these rows again"
        say(
            f"rows without a score: {tally.without_score:,}; their `reason` says why, and `rewardstack check` checks "
            f"the services; {remedy}"
        )
        return NOT_ALL_SCORED

    def _tell_failures(self) -> None:
        for line in self._options.failures.lines():
            say(line)
