"""Parses route definitions from a file or from code; see `docs/routing.md` for the syntax."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rewardstack.core.json_types import is_finite
from rewardstack.core.misspellings import did_you_mean, not_known
from rewardstack.core.steps import drop_none
from rewardstack.errors import RouteError
from rewardstack.routing.composite import (
    ON_PART_ERROR,
    Cascade,
    Composite,
    Gate,
    Majority,
    Part,
    WeightedSum,
)
from rewardstack.routing.judges import NamedJudge, parse_judge
from rewardstack.routing.reward_models import parse_reward_model
from rewardstack.routing.routes import Leaf, Route, RouteTable, linked_sources
from rewardstack.routing.shaping import FIELDS as SHAPING
from rewardstack.routing.shaping import read_bounds, read_shaping
from rewardstack.score import ON_ERROR
from rewardstack_verifier.transcript import TRANSCRIPTS

C = TypeVar("C", bound=str)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLES = ("routes", "judges", "reward_models")
"""The tables of a routes file."""
KINDS = ("route", "sum", "majority", "gate", "cascade")
"""The kinds of composites. A route's table has exactly one field with one of these names; that field has the parts."""
OPTIONS = {
    "route": (),
    "sum": ("weight",),
    "majority": (),
    "gate": ("at_least",),
    "then": (),
    "cascade": ("at_least", "unsure", "agreement"),
}
"""For each field that contains parts, the fields that such a part may have in addition to `route`."""
COMMON = ("on_error", "on_part_error", "transcript", *SHAPING)
"""The optional fields of every route's table."""
LISTS: dict[str, type[WeightedSum | Majority | Cascade]] = {
    "route": Cascade,
    "sum": WeightedSum,
    "majority": Majority,
    "cascade": Cascade,
}
"""The class of each kind of composite that is parsed as a list of parts; `route` is a cascade with one part."""


def load_routes(path: str) -> list[Route]:
    """Load the routes of a file.

    Args:
        path: a TOML or JSON file with at least one of the tables `routes`, `judges` and `reward_models`.

    Raises:
        RouteError: the file cannot be read, or a definition is malformed; the error names the file and the route.
    """
    routes, judges, models = _read(path)
    try:
        named = [judge_route(parse_judge(name, table, Path(path).parent)) for name, table in judges.items()]
        named += [reward_model_route(name, table) for name, table in models.items()]
        return [*named, *(parse_route(name, spec) for name, spec in routes.items())]
    except RouteError as error:
        raise RouteError(f"{path}: {error}", error.field) from error


def load_judges(path: str) -> list[NamedJudge]:
    """Load the judges of a routes file, in order; see `load_routes` for the errors."""
    leaves = [route.target for route in load_routes(path) if isinstance(route.target, Leaf)]
    return [leaf.judge for leaf in leaves if leaf.judge is not None]


def template_files(path: str) -> list[str]:
    """Return the values of `template_path` in a routes file, without resolving relative paths.

    Raises:
        RouteError: the routes file cannot be read.
    """
    tables = (table for table in _read(path)[1].values() if isinstance(table, dict))
    return [table["template_path"] for table in tables if isinstance(table.get("template_path"), str)]


def judge_route(judge: NamedJudge) -> Route:
    """Return the route of a named judge."""
    return Route(judge.name, Leaf("judge", judge.name, judge))


def reward_model_route(name: str, table: object) -> Route:
    """Parse a reward model and return its route; see `parse_reward_model` for the errors."""
    model, shaping, on_error = parse_reward_model(name, table)
    return Route(name, Leaf("reward_model", name, reward_model=model), on_error=on_error, shaping=shaping)


def _read(path: str) -> list[dict[str, Any]]:
    """Return the tables of a file, in the order of `TABLES`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        document = (
            json.loads(text, object_pairs_hook=_reject_duplicates) if path.endswith(".json") else tomllib.loads(text)
        )
    except OSError as error:
        why = f"{Path(path).absolute()} cannot be read: {error.strerror}; correct the path, or unset the variable"
        raise RouteError(f"REWARDSTACK_ROUTES: {why}", "REWARDSTACK_ROUTES") from error
    except ValueError as error:
        kind = "JSON" if path.endswith(".json") else "TOML"
        hint = "put names with a slash or a dot in quotes" if path.endswith(".toml") else "name a .toml or .json file"
        why = f"{path} is not valid {kind}: {error}{'' if kind == 'JSON' else f'; {hint}'}"
        raise RouteError(f"REWARDSTACK_ROUTES: {why}", "REWARDSTACK_ROUTES") from error
    tables = document if isinstance(document, dict) else {}
    absent = [name for name in TABLES if name not in tables]
    for name in tables.keys() - {*TABLES}:
        if meant := did_you_mean(str(name), absent).strip():
            raise RouteError(
                f"REWARDSTACK_ROUTES: {path}: the table `{name}` is not known; {meant}", "REWARDSTACK_ROUTES"
            )
    result = [tables.get(name, {}) for name in TABLES]
    if len(absent) == len(TABLES) or not all(isinstance(table, dict) for table in result):
        why = f"{path} has no table `routes`, `judges` or `reward_models`"
        raise RouteError(f"REWARDSTACK_ROUTES: {why}", "REWARDSTACK_ROUTES")
    return result


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; raise ValueError for duplicate names, as TOML does."""
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise ValueError(f"{name!r} is duplicated")
    return dict(pairs)


def parse_route(name: str, spec: object) -> Route:
    """Parse the definition of a route.

    Args:
        name: the `data_source` that the route matches; a `data_source` that begins with `NAME_` matches too.
        spec: another route's name, or a table with one of the fields in `KINDS`, and optionally fields in `COMMON`.

    Raises:
        RouteError: the definition is malformed; the error names the field.
    """
    if not isinstance(name, str) or not name:
        raise RouteError(f"a route's name must be a non-empty string, got {name!r}")
    fields: dict[str, Any] | None = {"route": spec} if isinstance(spec, str) else None
    if isinstance(spec, Mapping):
        fields = dict(spec)
    if fields is None:
        raise RouteError(f"route {name!r}: expected a table or another route's name, got {type(spec).__name__}", name)
    on_error = _choice(name, fields, "on_error", ON_ERROR)
    transcript = _choice(name, fields, "transcript", TRANSCRIPTS)
    shaping_fields = {field: fields.pop(field) for field in SHAPING if field in fields}
    shaping = read_shaping(shaping_fields, partial(_route_error, name))
    return Route(name, parse_composite(name, fields), on_error=on_error, shaping=shaping, transcript=transcript)


def _choice(name: str, fields: dict[str, Any], field: str, choices: Sequence[C]) -> C | None:
    """Remove a field from a route's table, and return its value; raise RouteError if it is not one of `choices`."""
    value = fields.pop(field, None)
    if value is not None and value not in choices:
        raise RouteError(f"route {name!r}: {field} must be one of {', '.join(choices)}, got {value!r}", name)
    return value


def definition(route: Route) -> dict[str, Any]:
    """Return a route as JSON types.

    For a composite, the result is its table. For a leaf, the result has the scorer's kind and target, and the judge or
    reward model if there is one.
    """
    target = route.target
    table: dict[str, Any]
    if isinstance(target, Leaf):
        table = {"kind": target.kind, "target": target.target}
        if target.judge is not None:
            table["judge"] = target.judge.definition
        if target.reward_model is not None:
            table["reward_model"] = target.reward_model.definition
    elif isinstance(target, Gate):
        check = {"route": target.check.route, "at_least": target.check.at_least}
        table = {"gate": check, "then": target.then.route, "else": target.otherwise}
    elif isinstance(target, WeightedSum):
        table = {"sum": [{"route": part.route, "weight": part.weight} for part in target.parts]}
    elif isinstance(target, Majority):
        table = {"majority": [{"route": part.route} for part in target.parts]}
    else:
        table = {"cascade": [_part_definition(part) for part in target.parts]}
    if not isinstance(target, Leaf):
        table["on_part_error"] = target.on_part_error
    if route.shaping is not None:
        table |= route.shaping.definition
    return table | drop_none({"on_error": route.on_error, "transcript": route.transcript})


def _part_definition(part: Part) -> dict[str, Any]:
    """Return a part of a cascade as a table."""
    unsure = None if part.unsure is None else list(part.unsure)
    fields = {"at_least": part.at_least, "unsure": unsure, "agreement": part.agreement}
    return {"route": part.route, **{name: value for name, value in fields.items() if value is not None}}


def definitions(routes: RouteTable, sources: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return a dict from each source to the definition of its route.

    The dict also has all sources to which the routes of `sources` send samples, directly or indirectly (see
    `linked_sources`). Named judges and reward models are reduced to the fields on which scores depend.

    Raises:
        UnknownSourceError: a source has no route.
    """
    definitions_by_source: dict[str, dict[str, Any]] = {}
    pending = list(sources)
    while pending:
        source = pending.pop()
        if source not in definitions_by_source:
            route = routes.find(source)
            definitions_by_source[source] = definition(route)
            pending += linked_sources(route.target)
            if not isinstance(route.target, Leaf):
                continue
            if route.target.judge is not None:
                definitions_by_source[source]["judge"] = route.target.judge.score_definition
            elif route.target.reward_model is not None:
                definitions_by_source[source]["reward_model"] = route.target.reward_model.score_definition
    return definitions_by_source


def parse_composite(name: str, fields: Mapping[str, Any]) -> Composite:
    """Parse the definition of a composite.

    Args:
        name: name of the route, for errors.
        fields: the route's fields: exactly one of `KINDS`, and options.

    Raises:
        RouteError: the definition is malformed; the error names the field.
    """
    return _Parser(name, dict(fields)).composite()


class _Parser:
    """Parses one definition; errors name the route and the field."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self._name = name
        self._fields = fields

    def composite(self) -> Composite:
        on_part_error = self._fields.pop("on_part_error", "fail")
        if on_part_error not in ON_PART_ERROR:
            raise self.error("on_part_error", f"must be one of {', '.join(ON_PART_ERROR)}")
        kinds = [kind for kind in KINDS if kind in self._fields]
        if len(kinds) != 1:
            names = ", ".join(map(repr, self._fields)) or "none"
            meant = "" if kinds else "".join(did_you_mean(str(name), KINDS) for name in self._fields)
            hint = f"; {meant}".rstrip(" ;")
            raise self.error("", f"needs exactly one of {', '.join(KINDS)}, got {names}{hint}")
        kind = kinds[0]
        value = self._fields.pop(kind)
        composite: Composite
        if kind == "gate":
            composite = Gate(
                self._part("gate", {"at_least": 1.0, **self._table("gate", value)}),
                self._part("then", self._fields.pop("then", None)),
                self._number("else", self._fields.pop("else", 0.0)),
                on_part_error,
            )
        else:
            parts = self._parts(kind, [value] if kind == "route" else value)
            composite = LISTS[kind](parts, on_part_error)
            if kind == "sum" and on_part_error == "skip" and (least := min(part.weight for part in parts)) < 0:
                raise self.error("sum.weight", f"must not be negative where on_part_error is skip, got {least:g}")
        if self._fields:
            unknown = next(iter(self._fields))
            specific = ("gate", "then", "else") if kind == "gate" else (kind,)
            raise self.error(unknown, not_known(unknown, (*specific, *COMMON)))
        return composite

    def _parts(self, field: str, value: Any) -> tuple[Part, ...]:
        if not isinstance(value, (list, tuple)) or not value:
            raise self.error(field, "must be a non-empty list of routes")
        return tuple(self._part(field, part) for part in value)

    def _part(self, field: str, value: Any) -> Part:
        table = self._table(field, value)
        known = "route", *OPTIONS[field]
        if unknown := set(table) - {*known}:
            raise self.error(f"{field}.{min(unknown)}", not_known(min(unknown), known))
        route = table.pop("route", None)
        if not isinstance(route, str) or not route:
            raise self.error(field, "needs a route's name under `route`")
        return Part(route, **{name: self._option(f"{field}.{name}", option) for name, option in table.items()})

    def _option(self, field: str, value: Any) -> Any:
        if field == "cascade.unsure":
            return read_bounds(value, lambda message: self.error(field, message))
        number = self._number(field, value)
        if field == "cascade.agreement" and not 0 < number <= 1:
            raise self.error(field, f"must be a share of votes, above 0 and at most 1, got {value!r}")
        return number

    def _table(self, field: str, value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            return {"route": value}
        if not isinstance(value, Mapping):
            raise self.error(field, "must be a route's name or a table with `route`")
        return dict(value)

    def _number(self, field: str, value: Any) -> float:
        if not is_finite(value):
            raise self.error(field, f"must be a finite number, got {value!r}")
        return float(value)

    def error(self, field: str, message: str) -> RouteError:
        return _route_error(self._name, field, message)


def _route_error(name: str, field: str, message: str) -> RouteError:
    where = f"route {name!r}" + (f", {field}" if field else "")
    return RouteError(f"{where} {message}", field or name)
