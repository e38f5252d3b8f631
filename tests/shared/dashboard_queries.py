"""The queries of the dashboards."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["fill_variables", "queries_of"]


def queries_of(dashboard: Path) -> dict[str, str]:
    """Queries of the panels, by title and number."""
    panels = json.loads(dashboard.read_text())["panels"]
    return {
        f"{panel['title']} {target['refId']}": target["expr"] for panel in panels for target in panel.get("targets", [])
    }


def fill_variables(expression: str, values: Mapping[str, str] | None = None, interval: str = "1m") -> str:
    """Return a query without Grafana's variables. A variable without a value matches everything."""
    text = re.sub(r"\$__(rate_interval|interval|range)\b", interval, expression)
    known = values or {}
    return re.sub(r"\$(cluster|namespace|service|model|tenant)\b", lambda match: known.get(match[1], ".*"), text)
