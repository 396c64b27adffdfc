"""Compare scores with labels row by row, in bounded memory, and return the report as a dict of JSON types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappush, heappushpop
from typing import Any, NamedTuple

from rewardstack.cause import Cause
from rewardstack.core.messages import response_text
from rewardstack.score import STATUSES, Score
from rewardstack_cli.data.rows import Row, to_request
from rewardstack_cli.evaluation.classification_metrics import LabeledScores, mcnemar
from rewardstack_cli.evaluation.labels import LabeledRow

MAX_TEXT = 300
"""Maximum characters of a text in the report."""
LISTED_CAUSES = 5
"""Maximum number of causes to list, most frequent first, of rows without a score or with only a fallback."""


class ReportOptions(NamedTuple):
    """The options of the report.

    Args:
        file: file with the rows.
        label: field with the labels.
        by: field to group by.
        threshold: minimum score; a response with at least this score counts as right.
        bins: number of calibration bins.
        disagreements: maximum number of disagreements to list.
    """

    file: str
    label: str
    by: str
    threshold: float
    bins: int
    disagreements: int

    def agrees(self, row: LabeledRow, score: Score) -> bool:
        """Return whether the score agrees with the label."""
        return self.is_scored_right(score) == row.right

    def is_scored_right(self, score: Score) -> bool:
        """Return whether the score counts the response as right."""
        return is_scored(score) and score.value is not None and score.value >= self.threshold


class Result(NamedTuple):
    """The scores of one row under one setting.

    Args:
        score: the row's score.
        injected: the scores of the response with each prompt injection, in order; empty if there are no injections, or
            if the response is labeled right.
    """

    score: Score
    injected: Sequence[Score] = ()


class Report:
    """The report on a file.

    Args:
        report_options: the options of the report.
        settings: the options of each setting, by the setting's name. A setting is a way to score the rows; its options
            replace the options in the rows. The names are `set` and `against`, like the arguments `--set` and
            `--against` of `evaluate`. If the scores are in the file, the only name is `scored`. If there are two
            settings, they are compared.
        injections: names of the prompt injections.
    """

    def __init__(
        self, report_options: ReportOptions, settings: Mapping[str, Mapping[str, Any]], injections: Iterable[str] = ()
    ) -> None:
        names = [*injections]
        self._report_options = report_options
        self._settings = [_SettingReport(name, options, report_options, names) for name, options in settings.items()]
        self._comparison = _Comparison(report_options) if len(settings) == 2 else None
        self._rows = self._right = 0

    def add(self, row: LabeledRow, results: Sequence[Result]) -> None:
        """Add a row with its result under each setting."""
        self._rows += 1
        self._right += row.right
        for setting, result in zip(self._settings, results, strict=True):
            setting.add(row, result)
        if self._comparison is not None:
            self._comparison.add(row, *(result.score for result in results))

    @property
    def is_complete(self) -> bool:
        """Whether every row has a score; if there are injections, every row with an injection must have one, too."""
        return not any(setting.without_score for setting in self._settings)

    def record(self) -> dict[str, Any]:
        """Return the report as a dict of JSON types."""
        return {
            **self._report_options._asdict(),
            "rows": self._rows,
            "right": self._right,
            "settings": [setting.record() for setting in self._settings],
            "comparison": None if self._comparison is None else self._comparison.record(),
        }


class _GroupReport:
    """Statuses and metrics of one group of rows, or of all rows."""

    def __init__(self, report_options: ReportOptions) -> None:
        self._statuses: Counter[str] = Counter()
        self.scores = LabeledScores(report_options.threshold, report_options.bins)

    def add(self, row: LabeledRow, score: Score) -> None:
        self._statuses[score.status] += 1
        if is_scored(score) and score.value is not None:
            self.scores.add(score.value, row.right)

    def record(self) -> dict[str, Any]:
        statuses = {status: self._statuses[status] for status in STATUSES}
        return {"statuses": statuses, "figures": self.scores.summary()}


class _SettingReport:
    """The part of the report about one setting."""

    def __init__(
        self, name: str, options: Mapping[str, Any], report_options: ReportOptions, injections: Sequence[str]
    ) -> None:
        self._name, self._options, self._report_options = name, options, report_options
        self._all_rows = _GroupReport(report_options)
        self._groups: dict[str, _GroupReport] = {}
        self._causes: Counter[tuple[str, Cause]] = Counter()
        self._first: dict[tuple[str, Cause], str] = {}
        self._disagreements = _LargestDisagreements(report_options.disagreements)
        self._injections: list[dict[str, Any]] = [
            {"name": one, "fooled": 0, "of": 0, "without": 0} for one in injections
        ]
        self.without_score = 0

    def add(self, row: LabeledRow, result: Result) -> None:
        score = result.score
        self.without_score += sum(one.status in ("unscored", "failed") for one in (score, *result.injected))
        self._all_rows.add(row, score)
        if row.group not in self._groups:
            self._groups[row.group] = _GroupReport(self._report_options)
        self._groups[row.group].add(row, score)
        if not is_scored(score):
            key = score.status, score.cause or Cause.OTHER
            self._causes[key] += 1
            self._first.setdefault(key, shorten(score.reason))
            return
        if not self._report_options.agrees(row, score):
            self._disagreements.add(abs((score.value or 0.0) - self._report_options.threshold), row, score)
        if not self._report_options.is_scored_right(score):
            self._add_injected(result.injected)

    def _add_injected(self, scores: Sequence[Score]) -> None:
        """Count the results of all injections into one response, which was scored wrong without an injection."""
        for counts, score in zip(self._injections, scores, strict=False):
            counts["of" if is_scored(score) else "without"] += 1
            counts["fooled"] += self._report_options.is_scored_right(score)

    def record(self) -> dict[str, Any]:
        return {
            "name": self._name,
            "options": dict(self._options),
            "without": [
                {"status": key[0], "cause": key[1].value, "reason": self._first[key], "rows": count}
                for key, count in self._causes.most_common(LISTED_CAUSES)
            ],
            **self._all_rows.record(),
            "groups": [{"name": name, **group.record()} for name, group in sorted(self._groups.items())],
            "injections": sorted(self._injections, key=lambda one: -one["fooled"]),
            "disagreements": self._disagreements.records(),
            "all_disagreements": self._disagreements.count,
        }


class _LargestDisagreements:
    """Counts all disagreements, and keeps those whose scores are farthest from the threshold.

    Among disagreements at the same distance from the threshold, those that come first in the file are kept.
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._heap: list[tuple[float, int, dict[str, Any]]] = []
        self.count = 0

    def add(self, key: float, row: LabeledRow, score: Score) -> None:
        self.count += 1
        if len(self._heap) < self._max_rows:
            heappush(self._heap, (key, -self.count, _row_record(row, score)))
        elif self._heap and key > self._heap[0][0]:
            heappushpop(self._heap, (key, -self.count, _row_record(row, score)))

    def records(self) -> list[dict[str, Any]]:
        return [record for _, _, record in sorted(self._heap, key=lambda one: one[:2], reverse=True)]


class _Comparison:
    """Compares two settings on the rows with a score in both; lists rows where only one score agrees with the label."""

    def __init__(self, report_options: ReportOptions) -> None:
        self._report_options = report_options
        self._counts: Counter[tuple[bool, bool]] = Counter()
        self._discordant: list[dict[str, Any]] = []

    def add(self, row: LabeledRow, first: Score, second: Score) -> None:
        if not (is_scored(first) and is_scored(second)):
            return
        agreement = self._report_options.agrees(row, first), self._report_options.agrees(row, second)
        self._counts[agreement] += 1
        if agreement[0] != agreement[1] and len(self._discordant) < self._report_options.disagreements:
            self._discordant.append({**_row_record(row, first), "against": second.value})

    def record(self) -> dict[str, Any]:
        discordant_counts = self._counts[True, False], self._counts[False, True]
        return {
            "rows": self._counts.total(),
            "both_agree": self._counts[True, True],
            "first_alone": discordant_counts[0],
            "second_alone": discordant_counts[1],
            "p": mcnemar(*discordant_counts),
            "discordant": self._discordant,
        }


def is_scored(score: Score) -> bool:
    """Return whether the scorer returned a value; a fallback or the value of an error policy does not count."""
    return score.status == "ok" and score.value is not None


def _row_record(row: LabeledRow, score: Score) -> dict[str, Any]:
    request = to_request(row.row.fields, row.group)
    return {
        "row": _row_name(row.row),
        "group": row.group,
        "right": row.right,
        "value": score.value,
        "response": shorten(response_text(request.solution_str) or ""),
        "reference": shorten(str(request.ground_truth)),
        "reason": shorten(score.reason),
    }


def _row_name(row: Row) -> str:
    name = row.fields.get("name")
    return f"{row.position}, {shorten(name)}" if isinstance(name, str) else row.position


def shorten(text: str) -> str:
    """Return the first `MAX_TEXT` characters of a text, with an ellipsis if it is longer."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} …"
