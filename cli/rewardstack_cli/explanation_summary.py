"""Summarize an explanation: the value as a formula of its parts, and the facts that each part is based on.

An explanation (`rewardstack.core.steps`) has a step `part NAME` for each part of a composite route, and a step with a
`status` for each scorer; see `rewardstack.pipeline.stages`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rewardstack.cause import Cause
from rewardstack.core.steps import Explanation, Step
from rewardstack.routing.shaping import FLOORED
from rewardstack_cli.failures import CHECK_HINT, to_correct

PART_PREFIX = "part "
"""Prefix of the name of a part's step."""
MAX_LINES = 20
"""Maximum number of lines about the route, its parts and their facts, so that a summary fits on a screen."""
MAX_REQUESTS = 3
"""A summary shows the facts of at most this many requests to a judge."""
MAX_FACT = 100
"""Maximum characters of a fact. Of a longer fact, only the end is shown: it usually has the answer or verdict."""
MAX_REASON = 400
"""Maximum characters of a reason."""
TIMES = "\N{MULTIPLICATION SIGN}"
COMPOSITE_KINDS = ("sum", "majority", "gate", "cascade")
"""The kinds of composites. The definition of a composite has a field with the name of its kind."""
SHOWN_FACTS = (
    *("answer", "found in", "references as read", "unreadable", "fault", "references refused", "comparisons"),
    *("compared", "reply", "line read", "probabilities", "answers read", "why"),
)
"""The facts that a summary shows."""


class Node(NamedTuple):
    """A route and its result, from the steps of an explanation.

    Args:
        name: the `data_source` that the route scored.
        route: the definition of the route. A leaf (a route without parts) has the field `kind`; a composite has one of
            the fields `COMPOSITE_KINDS`.
        steps: the steps of scoring.
        result: `value`, `status` and `reason` before shaping; empty if scoring ended without a result.
        shaped: the route's shaping (`scale`, `shift`, `clip`) and the shaped `value`; empty if there is no shaping.
        parts: the parts that were scored, by name.
    """

    name: str
    route: Mapping[str, Any]
    steps: Sequence[Step]
    result: Mapping[str, Any]
    shaped: Mapping[str, Any]
    parts: Mapping[str, Node]

    @property
    def value(self) -> float | None:
        """The value after shaping; None if the route has no value."""
        value: float | None = self.shaped.get("value", self.result.get("value"))
        return value


def summarize(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of the summary: the formula, the parts with their facts, and how to see more."""
    route = explanation.steps[0].facts
    root = _build_node(explanation.data_source, route, explanation.steps)
    yield _headline(explanation, root, route.get("on_error"))
    lines = [*_node_lines(root, "")]
    yield from lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        yield f"... {len(lines) - MAX_LINES} more lines"
    score = explanation.score
    if score is not None:
        results = [*_leaf_results(root)] if root.parts else [(score.status, score.cause)]
        if any(status != "ok" and to_correct(status, cause) == "service" for status, cause in results):
            yield CHECK_HINT
    time = "" if score is None else f"{score.latency_ms:,.0f} ms; "
    yield f"{time}-v shows all steps, with prompts and replies"


def _leaf_results(node: Node) -> Iterator[tuple[str, Cause | None]]:
    """Yield the status and cause of each leaf (route without parts) that was scored."""
    if not node.parts and node.result:
        yield str(node.result["status"]), Cause.read(node.result.get("cause"))
    for part in node.parts.values():
        yield from _leaf_results(part)


def _build_node(name: str, route: Mapping[str, Any], steps: Sequence[Step]) -> Node:
    result: Mapping[str, Any] = {}
    shaped: Mapping[str, Any] = {}
    for step in steps:
        if step.name == "shaped":
            shaped = step.facts
        elif step.name == "key" and "error" in step.facts:  # the service did not report its identity
            result = {"status": "failed", "reason": step.facts["error"], "cause": step.facts.get("cause")}
        elif "status" in step.facts and step.name != "score":
            result = step.facts
    parts = [step for step in steps if step.name.startswith(PART_PREFIX)]
    step_by_part = {step.name.removeprefix(PART_PREFIX): step for step in parts}
    nodes = {part: _build_node(part, step.facts, step.steps) for part, step in step_by_part.items()}
    return Node(name, route, steps, result, shaped, nodes)


def _headline(explanation: Explanation, root: Node, policy: Any) -> str:
    score = explanation.score
    if score is None:
        return f"no score: {explanation.error}"
    reason = "" if root.parts or not score.reason else f": {_truncate(score.reason, MAX_REASON)}"
    if score.status in ("ok", "fallback"):
        return f"{_equation(score.value, root)}{'' if score.status == 'ok' else ' (fallback)'}{reason}"
    what = f": {_formula(root)}" if root.parts else reason
    reward = "null" if score.value is None else format_value(score.value)
    return f"no score ({score.status}){what}; the reward is {reward} (on_error = {policy})"


def _equation(value: float | None, node: Node) -> str:
    """Return `VALUE = FORMULA`. If the formula is the value, or begins with it, return only the formula."""
    formula = _formula(node)
    text = format_value(value)
    return formula if formula == text or formula.startswith((f"{text}, ", f"{text} (")) else f"{text} = {formula}"


def format_value(value: float | None) -> str:
    """Format a value with at most six significant digits. 1 becomes `1.0`, and None becomes `?`."""
    if value is None:
        return "?"
    text = f"{value:.6g}"
    return text if set(text) & set(".en") else f"{text}.0"


def _formula(node: Node) -> str:
    """Return the formula that combines the values of a node's parts, and then applies the shaping of its route."""
    formula = _unshaped_formula(node)
    if not node.shaped:
        return formula
    if node.result.get("value") == FLOORED:
        return f"{format_value(node.value)} (the floor, for a response that is too long)"
    scale, shift, clip = (node.shaped.get(name) for name in ("scale", "shift", "clip"))
    text = f"({formula})" if len(node.parts) > 1 and (scale, shift) != (None, None) else formula
    text = text if scale is None else f"{scale:g} {TIMES} {text}"
    text = text if shift is None else f"{text} {'-' if shift < 0 else '+'} {abs(shift):g}"
    return text if clip is None else f"clip({text}, {clip[0]:g}, {clip[1]:g})"


def _unshaped_formula(node: Node) -> str:
    route = node.route
    if "sum" in route:
        return _sum_formula(node, route["sum"], route["on_part_error"])
    if "majority" in route:
        return f"majority of {', '.join(_part_value(node, part['route'], is_bare=True) for part in route['majority'])}"
    if "gate" in route:
        return _gate_formula(node, route)
    if "cascade" in route:
        tried = [_part_value(node, part["route"]) for part in route["cascade"] if part["route"] in node.parts]
        before = f", as {', '.join(tried[:-1])} did not decide" if len(tried) > 1 else ""
        return f"{tried[-1]}{before}" if tried else "?"
    return format_value(node.result.get("value"))


def _sum_formula(node: Node, parts: Sequence[Mapping[str, Any]], on_part_error: str) -> str:
    scored = {name for name, part in node.parts.items() if part.value is not None}
    skips = on_part_error == "skip" and 0 < len(scored) < len(parts)
    terms = []
    for part in parts:
        if skips and part["route"] not in scored:
            continue
        weight, value = part["weight"], _part_value(node, part["route"], is_bare=True)
        sign = "-" if weight < 0 else "+"
        terms.append(f"{sign} {abs(weight):g} {TIMES} {value}")
    text = " ".join(terms)
    text = text.removeprefix("+ ") if text.startswith("+") else text.replace("- ", "-", 1)
    if not skips:
        return text
    total_weight = sum(one["weight"] for one in parts)
    scored_weight = sum(one["weight"] for one in parts if one["route"] in scored)
    return f"({text}) {TIMES} {total_weight:g} / {scored_weight:g}"


def _gate_formula(node: Node, route: Mapping[str, Any]) -> str:
    check, then = route["gate"], route["then"]
    checked, at_least = _part_value(node, check["route"]), f"{check['at_least']:g}"
    if then in node.parts:
        return f"{_part_value(node, then)}, because {checked} passes the gate ({at_least})"
    return f"{format_value(route['else'])}, because {checked} is below the gate ({at_least})"


def _part_value(node: Node, name: str, *, is_bare: bool = False) -> str:
    """Return `NAME VALUE` for a part, or only `VALUE` if `is_bare` is true.

    For a part without a value, return its name, or `0.0 (NAME STATUS)` if the composite counts the part as 0.
    """
    part = node.parts.get(name)
    if part is None or part.value is None:
        zero = part is not None and node.route.get("on_part_error") == "zero"
        return f"0.0 ({name} {part.result.get('status')})" if zero and part else name
    return format_value(part.value) if is_bare else f"{name} {format_value(part.value)}"


def _node_lines(node: Node, margin: str) -> Iterator[str]:
    """Yield the lines about a node.

    The first line shows the node's result. The lines about its parts follow; if the node has no parts, the facts
    of its scorer follow. For the root (empty `margin`), the first line has no result, because the headline already
    shows it.
    """
    yield f"{margin}{_result_line(node) if margin else f'{node.name} ({_route_kind(node)}){_cache_note(node)}'}"
    if not node.parts:
        yield from (f"{margin}    {line}" for line in _scorer_facts(node.steps))
    for part in node.parts.values():
        yield from _node_lines(part, f"{margin}  ")


def _route_kind(node: Node) -> str:
    if len(node.route.get("cascade", ())) == 1:
        return "alias"
    return str(node.route.get("kind") or next((one for one in COMPOSITE_KINDS if one in node.route), "route"))


def _cache_note(node: Node) -> str:
    return ", from the cache; --no-cache scores it again, and shows how" if node.result.get("found") else ""


def _result_line(node: Node) -> str:
    """Return the name, kind, value and reason of a part."""
    text, reason = f"{node.name} ({_route_kind(node)}): ", node.result.get("reason")
    if node.value is None:
        text += f"no score ({node.result.get('status', 'not asked')})"
    else:
        text += _equation(node.value, node)
    return f"{text}{_cache_note(node)}{f': {_truncate(reason, MAX_REASON)}' if reason and not node.parts else ''}"


def _scorer_facts(steps: Sequence[Step]) -> Iterator[str]:
    """Yield a line for each of the `SHOWN_FACTS` in a scorer's steps.

    For a judge, only the facts of its first `MAX_REQUESTS` requests are shown.
    """
    requests = 0
    for step in steps:
        if step.name == "request for a verdict":
            requests += 1
        if requests <= MAX_REQUESTS:
            yield from _step_facts(step.facts)
        yield from _scorer_facts(step.steps)
    if requests > MAX_REQUESTS:
        yield f"... {requests - MAX_REQUESTS} more requests"


def _step_facts(facts: Mapping[str, Any]) -> Iterator[str]:
    shown = {name: facts[name] for name in SHOWN_FACTS if facts.get(name) not in (None, "", [], {})}
    if shown.get("line read") == str(shown.get("reply", "")).strip():
        shown.pop("line read", None)
    if "answer" in shown and "found in" in shown:
        shown["answer"] = f"{shown['answer']} (found in {shown.pop('found in')})"
    elif "found in" in shown:
        shown["answer"] = f"none found; found in: {shown.pop('found in')}"
    for name, value in shown.items():
        yield f"{name}: {_shorten(value)}"


def _shorten(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= MAX_FACT else f"... {text[-MAX_FACT:]}"


def _truncate(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else f"{text[:max_length]} ..."
