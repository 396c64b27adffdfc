"""What dashboards are made of, and how Grafana wants it written.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

SOURCE = {"type": "prometheus", "uid": "prometheus"}
"""The data source that `provisioning/datasources` sets up."""
TAG = "rewardstack"
COLUMNS = 24
"""Width of a dashboard."""
HEIGHTS = {"stat": 4, "timeseries": 8}
SCHEMA = 39
"""Version of the model, of Grafana 11; later ones read it."""


@dataclass(frozen=True)
class Query:
    """One line of a panel, or several.

    Args:
        expr: PromQL; `$__rate_interval` is Grafana's.
        legend: name of a line, with labels in double braces.
    """

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """A picture of some queries.

    Args:
        title: above it.
        queries: in order.
        unit: Grafana's name of one, such as `s`, `percentunit` or `short`.
        text: what it means, shown on demand.
        kind: lines over time, or the latest number.
        width: in columns, of `COLUMNS`.
    """

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    text: str = ""
    kind: Literal["timeseries", "stat"] = "timeseries"
    width: int = 8

    def json(self, ident: int, place: Mapping[str, int]) -> dict[str, Any]:
        """The panel at its place."""
        stat = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "area"}
        lines = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
        return {
            "id": ident,
            "type": self.kind,
            "title": self.title,
            "description": self.text,
            "datasource": SOURCE,
            "gridPos": place,
            "fieldConfig": {"defaults": {"unit": self.unit, "min": 0}, "overrides": []},
            "options": stat if self.kind == "stat" else lines,
            "targets": [
                {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query.expr, "legendFormat": query.legend}
                for at, query in enumerate(self.queries)
            ],
        }


@dataclass(frozen=True)
class Row:
    """Panels under a heading, from left to right and then below.

    Args:
        title: the heading.
        panels: in order.
    """

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Dashboard:
    """One page.

    Args:
        name: of its file, and in its address.
        title: above it.
        rows: from top to bottom.
    """

    name: str
    title: str
    rows: Sequence[Row]

    def json(self) -> dict[str, Any]:
        """The page as Grafana reads it."""
        return {
            "uid": f"rewardstack-{self.name}",
            "title": self.title,
            "tags": [TAG],
            "schemaVersion": SCHEMA,
            "editable": False,
            "refresh": "15s",
            "time": {"from": "now-1h", "to": "now"},
            "links": [{"type": "dashboards", "tags": [TAG], "title": TAG, "asDropdown": False, "keepTime": True}],
            "panels": list(_placed(self.rows)),
        }


def _placed(rows: Iterable[Row]) -> Iterable[dict[str, Any]]:
    """Headings and panels, numbered, each at its place."""
    ident, top = 1, 0
    for row in rows:
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        yield {"id": ident, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        ident, top, left, height = ident + 1, top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                top, left, height = top + height, 0, 0
            own = HEIGHTS[panel.kind]
            yield panel.json(ident, {"h": own, "w": panel.width, "x": left, "y": top})
            ident, left, height = ident + 1, left + panel.width, max(height, own)
        top += height
