"""`--dry-run` of `rewardstack score` and `evaluate`: the estimated cost of scoring rows, by `data_source`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from rewardstack.client import group_of, quote_on_loop
from rewardstack.core.cost import Quote
from rewardstack.core.event_loop import run_async
from rewardstack.core.groups import split_batches
from rewardstack.errors import RequestError
from rewardstack.score import Request
from rewardstack.settings import Settings
from rewardstack_cli.console import Grid, count_rows, err, plain_text, printable, put, say
from rewardstack_cli.data.rows import Row
from rewardstack_cli.options import Options
from rewardstack_cli.progress import NOT_ALL_SCORED

IDENTITY_TIMEOUT = 60.0
"""Timeout in seconds for a service to report its identity (such as its model), which is part of cache keys, unless
`--timeout` is shorter."""


def show_cost(rows: Iterable[Row], path: Path, options: Options) -> int:
    """Print the estimated cost for each `data_source`, and the total cost.

    Rows whose scores are cached cost nothing. Completions are counted at their maximum length.

    Args:
        rows: the rows that would be scored.
        path: the file with the rows.
        options: how the rows would be scored.

    Returns:
        The exit status: 0 if every row can be scored, else 3.

    Raises:
        RewardstackError: there are no rows, a setting is wrong, or a service does not answer.
    """
    counts: Counter[str] = Counter()
    row_error: list[RequestError] = []
    with err.status(f"reading {printable(str(path))}"):
        quotes = asyncio.run(_quote_all(_valid_requests(rows, options, counts, row_error), options))
    if not counts and not row_error:
        raise RequestError(f"IN: {path} has no rows", "IN")
    with_cache = bool(Settings.from_env().cache_url)
    cached = ["cached"] if with_cache else []
    table = Grid("data_source", "rows", *cached, "malformed", "requests", "prompt tokens", "completion tokens")
    for name, quote in sorted(quotes.items()):
        pattern = options.routes.find(name).pattern
        table.add_row(plain_text(f"{name} ({pattern})"), *_cells(counts[name], quote, with_cache))
    table.show()
    total = Quote.total(quotes.values())
    unscored = len(row_error) + total.unscored
    _print_total(counts.total() + len(row_error), unscored, total, with_cache)
    for name, quote in sorted(quotes.items()):
        if quote.groups:
            each = f"{quote.usage.requests / quote.groups:,.1f}".removesuffix(".0")
            put(plain_text(f"{name}: {quote.groups:,} groups, {each} requests each"))
    for error in row_error[:1]:
        say(f"the first malformed row: {error}")
    return NOT_ALL_SCORED if unscored else 0


def _valid_requests(
    rows: Iterable[Row], options: Options, counts: Counter[str], row_error: list[RequestError]
) -> Iterator[Request]:
    for row in rows:
        try:
            request = options.request(row)
        except RequestError as error:
            row_error.append(error)
        else:
            counts[request.data_source] += 1
            yield request


async def _quote_all(requests: Iterator[Request], options: Options) -> Mapping[str, Quote]:
    quotes_by_source: dict[str, Quote] = {}
    group = partial(group_of, options.routes)
    limit = min(IDENTITY_TIMEOUT, options.timeout or IDENTITY_TIMEOUT)
    for chunk in split_batches(requests, options.chunk_size, lambda _: 0, 0, group):
        chunk_quotes = await run_async(quote_on_loop(chunk, Settings.from_env(), limit))
        for name, quote in chunk_quotes.items():
            quotes_by_source[name] = Quote.total((quotes_by_source.get(name, Quote()), quote))
    return quotes_by_source


def _cells(rows: int, quote: Quote, with_cache: bool) -> tuple[str, ...]:
    usage = quote.usage
    about = "about " if usage.uncounted else ""
    most = "at most " if usage.completion_tokens else ""
    numbers = f"{usage.requests:,}", f"{about}{usage.prompt_tokens:,}", f"{most}{usage.completion_tokens:,}"
    cached = [f"{quote.cached:,}"] if with_cache else []
    return f"{rows:,}", *cached, f"{quote.unscored:,}", *numbers


def _print_total(rows: int, unscored: int, quote: Quote, with_cache: bool) -> None:
    cost = quote.usage._replace(uncounted=0).summary
    if quote.usage.requests:
        how = "estimated from the length of the prompts" if quote.usage.uncounted else "counted by the judge"
        cost = f"at most {cost} (prompt tokens {how})"
    cached = f"{quote.cached:,} cached, " if with_cache else ""
    put(plain_text(f"{count_rows(rows)}: {cached}{unscored:,} malformed; {cost}; nothing was scored"))
