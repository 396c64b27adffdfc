"""Build Grafana dashboards from queries, panels and rows.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

SOURCE = {"type": "prometheus", "uid": "prometheus"}
"""The Prometheus data source that Grafana's `provisioning/datasources` defines."""
TAG = "rewardstack"
COLUMNS = 24
"""Number of columns of a dashboard."""
HEIGHTS = {"stat": 4, "timeseries": 8}
SCHEMA = 39
"""Schema version of Grafana 11; later versions of Grafana convert it."""


@dataclass(frozen=True)
class Query:
    """A query that draws one or more lines in a panel.

    Args:
        expr: query in PromQL; Grafana replaces `$__rate_interval` in it.
        legend: name of each line; Grafana replaces label names in double braces by their values.
    """

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """A panel of a dashboard.

    Args:
        title: title of the panel.
        queries: queries in the order in which they are drawn.
        unit: unit in Grafana's notation, such as `s`, `percentunit` or `short`.
        text: description, which Grafana shows on hover.
        kind: `timeseries` for lines over time, `stat` for the latest value.
        width: width in columns; a dashboard has `COLUMNS`.
    """

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    text: str = ""
    kind: Literal["timeseries", "stat"] = "timeseries"
    width: int = 8

    def json(self, ident: int, place: Mapping[str, int]) -> dict[str, Any]:
        """Return the panel as Grafana JSON with an id and a position."""
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
    """Panels under a heading, from left to right on one or more lines.

    Args:
        title: heading of the row.
        panels: panels in order.
    """

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Dashboard:
    """A Grafana dashboard.

    Args:
        name: name of the dashboard's file, and part of its uid.
        title: title of the dashboard.
        rows: rows from top to bottom.
    """

    name: str
    title: str
    rows: Sequence[Row]

    def json(self) -> dict[str, Any]:
        """Return the dashboard as Grafana JSON."""
        return {
            "uid": f"rewardstack-{self.name}",
            "title": self.title,
            "tags": [TAG],
            "schemaVersion": SCHEMA,
            "editable": False,
            "refresh": "15s",
            "time": {"from": "now-1h", "to": "now"},
            "links": [{"type": "dashboards", "tags": [TAG], "title": TAG, "asDropdown": False, "keepTime": True}],
            "panels": list(_place_panels(self.rows)),
        }


def _place_panels(rows: Iterable[Row]) -> Iterable[dict[str, Any]]:
    """Yield row headings and panels as Grafana JSON, each with its id and position."""
    ident, top = 1, 0
    for row in rows:
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        yield {"id": ident, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        ident, top, left, height = ident + 1, top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                top, left, height = top + height, 0, 0
            panel_height = HEIGHTS[panel.kind]
            yield panel.json(ident, {"h": panel_height, "w": panel.width, "x": left, "y": top})
            ident, left, height = ident + 1, left + panel.width, max(height, panel_height)
        top += height
