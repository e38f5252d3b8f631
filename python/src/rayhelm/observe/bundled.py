"""The dashboards that the chart `platform` carries, as Grafana JSON. Needs no grafanalib."""

import json
from typing import Any

from rayhelm.deploy.charts.helm import charts_dir

__all__ = ["RUNBOOKS", "list_panels", "load_bundled", "set_runbooks"]

Json = dict[str, Any]

RUNBOOKS = "runbooks"
"""Variable with the URL of the folder of the runbooks."""


def load_bundled() -> dict[str, Json]:
    """Return the dashboards by name."""
    files = sorted((charts_dir() / "platform/files/dashboards").glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def list_panels(dashboard: Json) -> list[Json]:
    """Return rows and panels in their order, with those of closed rows."""
    return [each for panel in dashboard["panels"] for each in (panel, *panel.get("panels", ()))]


def set_runbooks(dashboard: Json, url: str) -> Json:
    """Return the dashboard as the chart renders it: with links to the runbooks at a URL, or without these links if the
    URL is empty."""
    variables = [
        {**each, "hide": 2, "query": url} if each["name"] == RUNBOOKS else each
        for each in dashboard["templating"]["list"]
    ]
    panels = dashboard["panels"] if url else [_without_links(panel) for panel in dashboard["panels"]]
    return {**dashboard, "panels": panels, "templating": {"list": variables}}


def _without_links(panel: Json) -> Json:
    kept = {key: value for key, value in panel.items() if key != "links"}
    if "panels" in kept:
        kept["panels"] = [_without_links(each) for each in kept["panels"]]
    config = kept.get("fieldConfig")
    return kept | ({"fieldConfig": _without_runbooks(config)} if config else {})


def _without_runbooks(node: Any) -> Any:
    """Remove the links of values, such as names of alerts, to the runbooks."""
    if isinstance(node, dict):
        return {key: _without_runbooks(value) for key, value in node.items()}
    if isinstance(node, list):
        is_link = [isinstance(item, dict) and f"${{{RUNBOOKS}}}" in item.get("url", "") for item in node]
        return [_without_runbooks(item) for item, drops in zip(node, is_link, strict=True) if not drops]
    return node
