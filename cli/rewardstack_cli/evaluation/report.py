"""The report of scores against labels, as one JSON object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardstack.core.messages import response_text
from rewardstack.score import STATUSES, Score
from rewardstack_cli.data.rows import Row, to_request
from rewardstack_cli.evaluation import figures
from rewardstack_cli.evaluation.labels import Labeled

TEXT = 300
"""Maximum characters of a text that the report shows."""
REASONS = 5
"""Number of reasons for missing scores that are listed, the most frequent first."""


class Setting(NamedTuple):
    """The scores of all rows under some options.

    Args:
        name: `set` or `against`, as the arguments; `scored` if the file has the scores.
        options: options added to every row, with the API key masked.
        scores: one score for each row, in order.
        injected: by name of the injection, one score for each row whose response is labeled wrong, in order.
    """

    name: str
    options: Mapping[str, Any]
    scores: Sequence[Score]
    injected: Mapping[str, Sequence[Score]]


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


def make_report(rows: Sequence[Labeled], settings: Sequence[Setting], terms: Terms) -> dict[str, Any]:
    """Return the report; with two settings it includes a comparison."""
    return {
        **terms._asdict(),
        "rows": len(rows),
        "right": sum(row.right for row in rows),
        "settings": [_of_setting(rows, setting, terms) for setting in settings],
        "comparison": _comparison(rows, settings, terms) if len(settings) == 2 else None,
    }


def _of_setting(rows: Sequence[Labeled], setting: Setting, terms: Terms) -> dict[str, Any]:
    groups: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        groups.setdefault(row.group, []).append(at)
    wrong = _disagreements(rows, setting.scores, terms.threshold)
    return {
        "name": setting.name,
        "options": dict(setting.options),
        "statuses": _statuses(setting.scores),
        "without": _reasons(setting.scores),
        "figures": _figures(rows, setting.scores, range(len(rows)), terms),
        "groups": [
            {"name": name, "statuses": _statuses([setting.scores[at] for at in places]),
             "figures": _figures(rows, setting.scores, places, terms)}
            for name, places in sorted(groups.items())
        ],
        "injections": _injections(rows, setting, terms.threshold),
        "disagreements": [_row(rows[at], setting.scores[at]) for at in wrong[: terms.disagreements]],
        "all_disagreements": len(wrong),
    }  # fmt: skip


def is_scored(score: Score) -> bool:
    """Return whether the scorer has scored the row: the value is neither a fallback nor set by an error policy."""
    return score.status == "ok" and score.value is not None


def _takes_for_right(score: Score, threshold: float) -> bool:
    return is_scored(score) and score.value is not None and score.value >= threshold


def _figures(rows: Sequence[Labeled], scores: Sequence[Score], places: Iterable[int], terms: Terms) -> dict[str, Any]:
    scored = [at for at in places if is_scored(scores[at])]
    values = np.array([scores[at].value for at in scored], dtype=np.float64)
    labels = np.array([rows[at].right for at in scored], dtype=np.bool_)
    return figures.summary(values, labels, terms.threshold, terms.bins)


def _statuses(scores: Iterable[Score]) -> dict[str, int]:
    counts = Counter(score.status for score in scores)
    return {status: counts[status] for status in STATUSES}


def _reasons(scores: Iterable[Score]) -> list[dict[str, Any]]:
    counts = Counter((score.status, cut(score.reason)) for score in scores if not is_scored(score))
    return [
        {"status": status, "reason": reason, "rows": count} for (status, reason), count in counts.most_common(REASONS)
    ]


def _disagreements(rows: Sequence[Labeled], scores: Sequence[Score], threshold: float) -> list[int]:
    """Return the positions of rows whose score contradicts the label, the farthest from the threshold first."""
    found = [
        (abs((score.value or 0.0) - threshold), at)
        for at, (row, score) in enumerate(zip(rows, scores, strict=True))
        if is_scored(score) and _takes_for_right(score, threshold) != row.right
    ]
    return [at for _, at in sorted(found, key=lambda one: (-one[0], one[1]))]


def _injections(rows: Sequence[Labeled], setting: Setting, threshold: float) -> list[dict[str, Any]]:
    """Count for each injection the rows that are scored right with it but wrong without it (`fooled`).

    Only rows that are scored wrong without the injection count. With the injection, `of` rows have a score, and
    `without` rows have none.
    """
    plain = [score for row, score in zip(rows, setting.scores, strict=True) if not row.right]
    found = []
    for name, scores in setting.injected.items():
        tried = [
            after
            for before, after in zip(plain, scores, strict=True)
            if is_scored(before) and not _takes_for_right(before, threshold)
        ]
        fooled = sum(_takes_for_right(after, threshold) for after in tried)
        scored = sum(map(is_scored, tried))
        found.append({"name": name, "fooled": fooled, "of": scored, "without": len(tried) - scored})
    return sorted(found, key=lambda one: -one["fooled"])


def _comparison(rows: Sequence[Labeled], settings: Sequence[Setting], terms: Terms) -> dict[str, Any]:
    """Compare two settings over the rows that both score, and list the rows where only one agrees with the label."""
    first, second = settings
    both = [at for at in range(len(rows)) if is_scored(first.scores[at]) and is_scored(second.scores[at])]
    hits = [
        [at for at in both if _takes_for_right(setting.scores[at], terms.threshold) == rows[at].right]
        for setting in settings
    ]
    alone = [sorted({*hits[0]} - {*hits[1]}), sorted({*hits[1]} - {*hits[0]})]
    discordant = sorted(alone[0] + alone[1])
    return {
        "rows": len(both),
        "both_agree": len(hits[0]) - len(alone[0]),
        "first_alone": len(alone[0]),
        "second_alone": len(alone[1]),
        "p": figures.mcnemar(len(alone[0]), len(alone[1])),
        "discordant": [
            {**_row(rows[at], first.scores[at]), "against": second.scores[at].value}
            for at in discordant[: terms.disagreements]
        ],
    }


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
