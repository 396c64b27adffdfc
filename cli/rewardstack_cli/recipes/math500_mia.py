"""`rewardstack prepare math500-mia`: members and non-members, paired on the same problem, for the remote judge.

In membership inference, a policy is rewarded for coming close to a response. A response is a member if it was in the
model's training data, else a non-member. If a member and a non-member answer the same problem, their rewards differ
because of the membership, not because of the problem.
"""

from __future__ import annotations

import argparse
from random import Random
from typing import Any, NamedTuple

from rewardstack.errors import RequestError
from rewardstack.routing.routes import JUDGE
from rewardstack_cli.data.rows import Row
from rewardstack_cli.recipes.dataset import Dataset, read_dataset, read_text, row_error
from rewardstack_cli.recipes.judge_options import add_judge_options, judge_options
from rewardstack_cli.recipes.prepared import DroppedRows, Prepared, split_by_share

NAME = "math500-mia"
HUB = "HuggingFaceH4/MATH-500"
TEST_SHARE_HELP = "share of the problems in the test split"
DATA_SOURCE = f"{JUDGE}_math500_mia"
MEMBER, NON_MEMBER = "member", "non_member"
LABELS = {MEMBER: MEMBER, NON_MEMBER: NON_MEMBER, "non-member": NON_MEMBER, 1: MEMBER, 0: NON_MEMBER}
"""Accepted values of a row's `label`. JSON's true and false are accepted, too, because they equal 1 and 0 in Python."""


class Response(NamedTuple):
    """A labeled response.

    Args:
        row: the row with the response.
        text: text of the response.
    """

    row: Row
    text: str


class Problem(NamedTuple):
    """A problem with its responses.

    Args:
        text: text of the problem.
        responses: responses by label.
    """

    text: str
    responses: dict[str, list[Response]]


class Pair(NamedTuple):
    """Two responses to one problem.

    Args:
        problem: text of the problem.
        member: response that was in the model's training data.
        non_member: response that was not in the training data.
    """

    problem: str
    member: str
    non_member: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this recipe."""
    parser.add_argument("--non-members", metavar="INPUT", help="another data set whose rows are all non-members")
    parser.add_argument(
        "--data-source", metavar="NAME", default=DATA_SOURCE, help="data_source of each row (%(default)s)"
    )
    add_judge_options(parser)


def prepare(args: argparse.Namespace) -> Prepared:
    """Return the rows for trainers, from pairs of a member and a non-member that answer the same problem.

    Raises:
        RewardstackError: the input cannot be read or paired, or an option is wrong.
    """
    if not args.data_source.startswith(JUDGE):
        raise RequestError(f"--data-source: {args.data_source!r} must begin with {JUDGE}", "--data-source")
    options = judge_options(args)
    sources = [read_dataset(args.input)]
    if args.non_members is not None:
        sources.append(read_dataset(args.non_members))
    dropped, random = DroppedRows(), Random(args.seed)
    problems = _collect_problems(sources, dropped)
    pairs_by_problem = [pairs for problem in problems if (pairs := _pair_responses(problem, random, dropped))]
    if not pairs_by_problem:
        raise RequestError(
            f"INPUT: no problem of {args.input} has both a member and a non-member; "
            "name a data set with the missing responses: --non-members",
            "INPUT",
        )
    groups_by_split = split_by_share(pairs_by_problem, args.test_share, random)
    splits = {name: _make_rows(name, groups, args.data_source, options) for name, groups in groups_by_split.items()}
    return Prepared(sources, splits, {"data_source": args.data_source, "judge": options}, dropped)


def _collect_problems(sources: list[Dataset], dropped: DroppedRows) -> list[Problem]:
    """Return the problems in the order of the input, with their distinct responses."""
    problems: dict[str, Problem] = {}
    seen: dict[tuple[str, str], tuple[str, Row]] = {}
    for source_index, source in enumerate(sources):
        for _, row in source.rows:
            text, response = read_text(row, "problem").strip(), read_text(row, "response", "solution").strip()
            label = _read_label(row, non_members=len(sources) > 1, is_second_input=source_index == 1)
            key = " ".join(text.split())
            if not text or not response:
                dropped.add(f"the {'response' if text else 'problem'} is empty", row)
            elif (key, response) in seen:
                _check_same_label(label, row, *seen[key, response])
                dropped.add("an earlier row has the same problem and response", row)
            else:
                seen[key, response] = label, row
                problems.setdefault(key, Problem(text, {MEMBER: [], NON_MEMBER: []}))
                problems[key].responses[label].append(Response(row, response))
    return list(problems.values())


def _check_same_label(label: str, row: Row, earlier: str, first: Row) -> None:
    """Raise `RequestError` if two rows with the same problem and response have different labels.

    `first` is the earlier row, and `earlier` is its label.
    """
    if label != earlier:
        raise row_error(row, "label", f"is {label}, but the same response is {earlier} in {first.location}; keep one")


def _read_label(row: Row, *, non_members: bool, is_second_input: bool) -> str:
    """Return a row's label.

    Args:
        row: row of one of the inputs.
        non_members: whether there is a second input (--non-members). If there is, a row without a label is a member in
            the first input, and a non-member in the second.
        is_second_input: whether the row is in the second input.
    """
    value = row.fields.get("label")
    if value is None:
        if not non_members:
            raise row_error(
                row,
                "label",
                "is missing; write member or non_member, or put all non-members into another data set (--non-members)",
            )
        return NON_MEMBER if is_second_input else MEMBER
    label = LABELS.get(value) if isinstance(value, (str, int, float)) else None
    if label is None:
        raise row_error(row, "label", f"must be member or non_member (or 1, 0), not {str(value)[:40]!r}")
    if is_second_input and label == MEMBER:
        raise row_error(row, "label", "is member, but --non-members has only non-members")
    return label


def _pair_responses(problem: Problem, random: Random, dropped: DroppedRows) -> list[Pair]:
    """Pair the members and non-members of a problem at random, each at most once; drop the remaining responses."""
    members, non_members = problem.responses[MEMBER], problem.responses[NON_MEMBER]
    random.shuffle(members)
    random.shuffle(non_members)
    count = min(len(members), len(non_members))
    for name, unpaired in ((MEMBER, members[count:]), (NON_MEMBER, non_members[count:])):
        for response in unpaired:
            dropped.add(f"a {name} response without a counterpart to the same problem", response.row)
    return [Pair(problem.text, *(one.text for one in pair)) for pair in zip(members, non_members, strict=False)]


def _make_rows(split: str, groups: list[list[Pair]], data_source: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return rows in verl's format; each member is followed by the non-member of its pair."""
    rows: list[dict[str, Any]] = []
    for number, pair in enumerate(pair for group in groups for pair in group):
        for label, response in ((MEMBER, pair.member), (NON_MEMBER, pair.non_member)):
            info = {"split": split, "index": len(rows), "pair": number, "label": label, "problem": pair.problem}
            row = {
                "data_source": data_source,
                "prompt": [{"role": "user", "content": pair.problem}],
                "ability": "math",
                "reward_model": {"style": "model", "ground_truth": response},
                "extra_info": {**info, **options},
            }
            rows.append(row)
    return rows
