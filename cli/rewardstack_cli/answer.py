"""The answer of an explanation: the value as a formula of its parts, and what each part was read from.

The steps of an explanation (`rewardstack.core.steps`) have a `part NAME` step for each part of a composite, and a step
with a `status` for each scorer; see `rewardstack.pipeline.stages`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rewardstack.core.steps import Explanation, Step
from rewardstack.routing.shaping import FLOORED

PART = "part "
"""Beginning of the name of a part's step."""
LINES = 20
"""Maximum number of lines between the first and the last line of an answer, so that it fits on one screen."""
REQUESTS = 3
"""Maximum number of a judge's requests that are shown."""
TEXT = 100
"""Maximum characters of a fact; of a longer text, the end is shown, where an answer or a verdict is."""
REASON = 400
"""Maximum characters of a reason."""
TIMES = "\N{MULTIPLICATION SIGN}"
COMPOSITES = ("sum", "majority", "gate", "cascade")
"""The field of a composite's definition that names its kind."""
FACTS = (
    *("answer", "found in", "references as read", "unreadable", "fault", "references refused", "comparisons"),
    *("compared", "reply", "line read", "probabilities", "answers read", "why"),
)
"""The facts that an answer shows."""


class Node(NamedTuple):
    """A route and its result, as the steps show them.

    Args:
        name: the `data_source` by which it was scored.
        route: its definition: `kind` of a leaf, else `sum`, `majority`, `gate` or `cascade`.
        steps: the steps of its scoring.
        result: `value`, `status` and `reason` before shaping; empty if scoring stopped before.
        shaped: the shaping of the route and the shaped `value`; empty without shaping.
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
        """The value; None if there is none."""
        value: float | None = self.shaped.get("value", self.result.get("value"))
        return value


def answer(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of the answer: the formula, the parts with what they were read from, and how to see more."""
    route = explanation.steps[0].facts
    root = _node(explanation.data_source, route, explanation.steps)
    yield _headline(explanation, root, route.get("on_error"))
    lines = [*_lines(root, "")]
    yield from lines[:LINES]
    if len(lines) > LINES:
        yield f"... {len(lines) - LINES} more lines"
    score = explanation.score
    if score is None or score.status in ("failed", "fallback"):
        yield "`rewardstack check` checks the services"
    time = "" if score is None else f"{score.latency_ms:,.0f} ms; "
    yield f"{time}-v shows all steps, with prompts and replies"


def _node(name: str, route: Mapping[str, Any], steps: Sequence[Step]) -> Node:
    result: Mapping[str, Any] = {}
    shaped: Mapping[str, Any] = {}
    for step in steps:
        if step.name == "shaped":
            shaped = step.facts
        elif step.name == "key" and "error" in step.facts:  # the service did not report its identity
            result = {"status": "failed", "reason": step.facts["error"]}
        elif "status" in step.facts and step.name != "score":
            result = step.facts
    parts = [step for step in steps if step.name.startswith(PART)]
    inner = {step.name.removeprefix(PART): step for step in parts}
    nodes = {part: _node(part, step.facts, step.steps) for part, step in inner.items()}
    return Node(name, route, steps, result, shaped, nodes)


def _headline(explanation: Explanation, root: Node, policy: Any) -> str:
    score = explanation.score
    if score is None:
        return f"no score: {explanation.error}"
    reason = "" if root.parts or not score.reason else f": {_cut_end(score.reason, REASON)}"
    if score.status in ("ok", "fallback"):
        return f"{_equation(score.value, root)}{'' if score.status == 'ok' else ' (fallback)'}{reason}"
    what = f": {_formula(root)}" if root.parts else reason
    reward = "null" if score.value is None else number(score.value)
    return f"no score ({score.status}){what}; the reward is {reward} (on_error = {policy})"


def _equation(value: float | None, node: Node) -> str:
    """Return a value, and the formula if that says more."""
    formula = _formula(node)
    text = number(value)
    return formula if formula == text or formula.startswith((f"{text}, ", f"{text} (")) else f"{text} = {formula}"


def number(value: float | None) -> str:
    """Format a value with at most six significant digits, and with a decimal point."""
    if value is None:
        return "?"
    text = f"{value:.6g}"
    return text if set(text) & set(".en") else f"{text}.0"


def _formula(node: Node) -> str:
    """Return the value of a node as a formula of the values of its parts, and of its shaping."""
    inner = _unshaped(node)
    if not node.shaped:
        return inner
    if node.result.get("value") == FLOORED:
        return f"{number(node.value)} (the floor, for a response that is too long)"
    scale, shift, clip = (node.shaped.get(name) for name in ("scale", "shift", "clip"))
    text = f"({inner})" if len(node.parts) > 1 and (scale, shift) != (None, None) else inner
    text = text if scale is None else f"{scale:g} {TIMES} {text}"
    text = text if shift is None else f"{text} {'-' if shift < 0 else '+'} {abs(shift):g}"
    return text if clip is None else f"clip({text}, {clip[0]:g}, {clip[1]:g})"


def _unshaped(node: Node) -> str:
    route = node.route
    if "sum" in route:
        return _sum(node, route["sum"], route["on_part_error"])
    if "majority" in route:
        return f"majority of {', '.join(_named(node, part['route'], bare=True) for part in route['majority'])}"
    if "gate" in route:
        return _gate(node, route)
    if "cascade" in route:
        tried = [_named(node, part["route"]) for part in route["cascade"] if part["route"] in node.parts]
        before = f", as {', '.join(tried[:-1])} did not decide" if len(tried) > 1 else ""
        return f"{tried[-1]}{before}" if tried else "?"
    return number(node.result.get("value"))


def _sum(node: Node, parts: Sequence[Mapping[str, Any]], on_part_error: str) -> str:
    scored = {name for name, part in node.parts.items() if part.value is not None}
    skips = on_part_error == "skip" and 0 < len(scored) < len(parts)
    terms = []
    for part in parts:
        if skips and part["route"] not in scored:
            continue
        weight, value = part["weight"], _named(node, part["route"], bare=True)
        sign = "-" if weight < 0 else "+"
        terms.append(f"{sign} {abs(weight):g} {TIMES} {value}")
    text = " ".join(terms)
    text = text.removeprefix("+ ") if text.startswith("+") else text.replace("- ", "-", 1)
    if not skips:
        return text
    whole = sum(one["weight"] for one in parts)
    present = sum(one["weight"] for one in parts if one["route"] in scored)
    return f"({text}) {TIMES} {whole:g} / {present:g}"


def _gate(node: Node, route: Mapping[str, Any]) -> str:
    check, then = route["gate"], route["then"]
    if then in node.parts:
        return f"{_named(node, then)}, because {_named(node, check['route'])} passes the gate ({check['at_least']:g})"
    return f"{number(route['else'])}, because {_named(node, check['route'])} is below the gate ({check['at_least']:g})"


def _named(node: Node, name: str, *, bare: bool = False) -> str:
    """Return the value of a part; with its name if that is not `bare`, or if there is no value."""
    part = node.parts.get(name)
    if part is None or part.value is None:
        zero = part is not None and node.route.get("on_part_error") == "zero"
        return f"0.0 ({name} {part.result.get('status')})" if zero and part else name
    return number(part.value) if bare else f"{name} {number(part.value)}"


def _lines(node: Node, margin: str) -> Iterator[str]:
    """Yield the result of a node, what it was read from, and its parts; of the outermost node, the headline has it."""
    yield f"{margin}{_result(node) if margin else f'{node.name} ({_kind(node)}){_cached(node)}'}"
    if not node.parts:
        yield from (f"{margin}    {line}" for line in _facts(node.steps))
    for part in node.parts.values():
        yield from _lines(part, f"{margin}  ")


def _kind(node: Node) -> str:
    if len(node.route.get("cascade", ())) == 1:
        return "alias"
    return str(node.route.get("kind") or next((one for one in COMPOSITES if one in node.route), "route"))


def _cached(node: Node) -> str:
    return ", from the cache; --no-cache scores it again, and shows how" if node.result.get("found") else ""


def _result(node: Node) -> str:
    """Return the name, kind, value and reason of a part."""
    text, reason = f"{node.name} ({_kind(node)}): ", node.result.get("reason")
    if node.value is None:
        text += f"no score ({node.result.get('status', 'not asked')})"
    else:
        text += _equation(node.value, node)
    return f"{text}{_cached(node)}{f': {_cut_end(reason, REASON)}' if reason and not node.parts else ''}"


def _facts(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the facts of a scorer's steps that say where its value comes from, one a line."""
    requests = 0
    for step in steps:
        if step.name == "request for a verdict":
            requests += 1
        if requests <= REQUESTS:
            yield from _facts_of(step.facts)
        yield from _facts(step.steps)
    if requests > REQUESTS:
        yield f"... {requests - REQUESTS} more requests"


def _facts_of(facts: Mapping[str, Any]) -> Iterator[str]:
    shown = {name: facts[name] for name in FACTS if facts.get(name) not in (None, "", [], {})}
    if shown.get("line read") == str(shown.get("reply", "")).strip():
        shown.pop("line read", None)
    if "answer" in shown and "found in" in shown:
        shown["answer"] = f"{shown['answer']} (found in {shown.pop('found in')})"
    elif "found in" in shown:
        shown["answer"] = f"none found; found in: {shown.pop('found in')}"
    for name, value in shown.items():
        yield f"{name}: {_brief(value)}"


def _brief(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= TEXT else f"... {text[-TEXT:]}"


def _cut_end(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."
