"""The report of scores against labels, as one JSON object. It is collected row by row, in memory that does not grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappush, heappushpop
from typing import Any, NamedTuple

from rewardstack.core.messages import response_text
from rewardstack.score import STATUSES, Score
from rewardstack_cli.data.rows import Row, to_request
from rewardstack_cli.evaluation import figures
from rewardstack_cli.evaluation.figures import Scores
from rewardstack_cli.evaluation.labels import Labeled

TEXT = 300
"""Maximum characters of a text that the report shows."""
REASONS = 5
"""Number of reasons for missing scores that are listed, the most frequent first."""
MOST_REASONS = 1000
"""Maximum number of different reasons that are counted; further ones are counted together."""


class Terms(NamedTuple):
    """The settings of the report.

    Args:
        file: file with the rows.
        label: field with the labels.
        by: field to group by.
        threshold: score from which a response counts as right.
        bins: number of calibration bins.
        disagreements: maximum number of disagreements to list.
    """

    file: str
    label: str
    by: str
    threshold: float
    bins: int
    disagreements: int

    def agrees(self, row: Labeled, score: Score) -> bool:
        """Return whether a score of the scorer says the same as the label."""
        return self.takes_for_right(score) == row.right

    def takes_for_right(self, score: Score) -> bool:
        """Return whether the scorer has scored the response right."""
        return is_scored(score) and score.value is not None and score.value >= self.threshold


class Result(NamedTuple):
    """The scores of one row under one setting.

    Args:
        score: the row's score.
        injected: its scores with each injection, in the order of the suite; empty if there is no suite, or if the
            response is labeled right.
    """

    score: Score
    injected: Sequence[Score] = ()


class Report:
    """The report on a file.

    Args:
        terms: the settings of the report.
        settings: the options that were added to every row, by name of the setting: `set` or `against`, as the
            arguments, or `scored` if the file has the scores. With two settings the report compares them.
        injections: names of the injections of the suite.
    """

    def __init__(self, terms: Terms, settings: Mapping[str, Mapping[str, Any]], injections: Iterable[str] = ()) -> None:
        names = [*injections]
        self._terms = terms
        self._settings = [_Setting(name, options, terms, names) for name, options in settings.items()]
        self._comparison = _Comparison(terms) if len(settings) == 2 else None
        self._rows = self._right = 0

    def add(self, row: Labeled, results: Sequence[Result]) -> None:
        """Add a row with its result under each setting."""
        self._rows += 1
        self._right += row.right
        for setting, result in zip(self._settings, results, strict=True):
            setting.add(row, result)
        if self._comparison is not None:
            self._comparison.add(row, *(result.score for result in results))

    @property
    def is_complete(self) -> bool:
        """Whether every row has a score, also with each injection."""
        return not any(setting.without_score for setting in self._settings)

    def record(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            **self._terms._asdict(),
            "rows": self._rows,
            "right": self._right,
            "settings": [setting.record() for setting in self._settings],
            "comparison": None if self._comparison is None else self._comparison.record(),
        }


class _Group:
    """Statuses and figures of some rows."""

    def __init__(self, terms: Terms) -> None:
        self._statuses: Counter[str] = Counter()
        self.scores = Scores(terms.threshold, terms.bins)

    def add(self, row: Labeled, score: Score) -> None:
        self._statuses[score.status] += 1
        if is_scored(score) and score.value is not None:
            self.scores.add(score.value, row.right)

    def record(self) -> dict[str, Any]:
        statuses = {status: self._statuses[status] for status in STATUSES}
        return {"statuses": statuses, "figures": self.scores.summary()}


class _Setting:
    """What the report says about one setting."""

    def __init__(self, name: str, options: Mapping[str, Any], terms: Terms, injections: Sequence[str]) -> None:
        self._name, self._options, self._terms = name, options, terms
        self._whole = _Group(terms)
        self._groups: dict[str, _Group] = {}
        self._reasons: Counter[tuple[str, str]] = Counter()
        self._disagreements = _Largest(terms.disagreements)
        self._injections: list[dict[str, Any]] = [
            {"name": one, "fooled": 0, "of": 0, "without": 0} for one in injections
        ]
        self.without_score = 0

    def add(self, row: Labeled, result: Result) -> None:
        score = result.score
        self.without_score += sum(one.status in ("unscored", "failed") for one in (score, *result.injected))
        self._whole.add(row, score)
        if row.group not in self._groups:
            self._groups[row.group] = _Group(self._terms)
        self._groups[row.group].add(row, score)
        if not is_scored(score):
            reason = score.status, cut(score.reason)
            is_counted = reason in self._reasons or len(self._reasons) < MOST_REASONS
            self._reasons[reason if is_counted else (score.status, "other reasons")] += 1
            return
        if not self._terms.agrees(row, score):
            self._disagreements.add(abs((score.value or 0.0) - self._terms.threshold), row, score)
        if not self._terms.takes_for_right(score):
            self._add_injected(result.injected)

    def _add_injected(self, scores: Sequence[Score]) -> None:
        """Count the scores with each injection of a response that is scored wrong without one."""
        for counts, score in zip(self._injections, scores, strict=False):
            counts["of" if is_scored(score) else "without"] += 1
            counts["fooled"] += self._terms.takes_for_right(score)

    def record(self) -> dict[str, Any]:
        reasons = self._reasons.most_common(REASONS)
        return {
            "name": self._name,
            "options": dict(self._options),
            "without": [{"status": status, "reason": reason, "rows": count} for (status, reason), count in reasons],
            **self._whole.record(),
            "groups": [{"name": name, **group.record()} for name, group in sorted(self._groups.items())],
            "injections": sorted(self._injections, key=lambda one: -one["fooled"]),
            "disagreements": self._disagreements.records(),
            "all_disagreements": self._disagreements.count,
        }


class _Largest:
    """The rows with the largest keys, the first of equal ones, and the number of all rows."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[float, int, dict[str, Any]]] = []
        self.count = 0

    def add(self, key: float, row: Labeled, score: Score) -> None:
        self.count += 1
        if len(self._heap) < self._most:
            heappush(self._heap, (key, -self.count, _row(row, score)))
        elif self._heap and key > self._heap[0][0]:
            heappushpop(self._heap, (key, -self.count, _row(row, score)))

    def records(self) -> list[dict[str, Any]]:
        return [record for _, _, record in sorted(self._heap, key=lambda one: one[:2], reverse=True)]


class _Comparison:
    """Two settings over the rows that both score, and the first rows where only one agrees with the label."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._counts: Counter[tuple[bool, bool]] = Counter()
        self._discordant: list[dict[str, Any]] = []

    def add(self, row: Labeled, first: Score, second: Score) -> None:
        if not (is_scored(first) and is_scored(second)):
            return
        agreement = self._terms.agrees(row, first), self._terms.agrees(row, second)
        self._counts[agreement] += 1
        if agreement[0] != agreement[1] and len(self._discordant) < self._terms.disagreements:
            self._discordant.append({**_row(row, first), "against": second.value})

    def record(self) -> dict[str, Any]:
        alone = self._counts[True, False], self._counts[False, True]
        return {
            "rows": self._counts.total(),
            "both_agree": self._counts[True, True],
            "first_alone": alone[0],
            "second_alone": alone[1],
            "p": figures.mcnemar(*alone),
            "discordant": self._discordant,
        }


def is_scored(score: Score) -> bool:
    """Return whether the scorer has scored the row: the value is neither a fallback nor set by an error policy."""
    return score.status == "ok" and score.value is not None


def _row(row: Labeled, score: Score) -> dict[str, Any]:
    request = to_request(row.row.fields, row.group)
    return {
        "row": _name(row.row),
        "group": row.group,
        "right": row.right,
        "value": score.value,
        "response": cut(response_text(request.solution_str) or ""),
        "reference": cut(str(request.ground_truth)),
        "reason": cut(score.reason),
    }


def _name(row: Row) -> str:
    name = row.fields.get("name")
    return f"{row.spot}, {cut(name)}" if isinstance(name, str) else row.spot


def cut(text: str) -> str:
    """Return a text of at most `TEXT` characters, with an ellipsis if it is cut."""
    return text if len(text) <= TEXT else f"{text[:TEXT]} …"
