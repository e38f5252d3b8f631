"""The queries of the dashboards."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from rayhelm.observe.bundled import list_panels

__all__ = ["OF_UNUSED_FEATURES", "fill_variables", "queries_of"]

OF_UNUSED_FEATURES = {
    "spec_decode_": "no model has speculative decoding",
    "ray_vllm_nixl_": "no prefill and decode replicas",
    'server=~"remote[.].+"': "no remote gateway",
    "rayhelm_gateway_excess_reports_total": "no model reports too many tokens",
    "rayhelm_gateway_tokens_used": "no tenant with tokensPerMinute",
    "rayhelm_gateway_token_keys_read_timestamp_seconds": "no OIDC",
    "rayhelm_gateway_certificate_not_after_timestamp_seconds": "no TLS at the gateway",
    "ALERTS{": "no alert fires",
}
"""Parts of queries that have no data in the fleets that tests run, and why."""


def queries_of(dashboard: Path) -> dict[str, str]:
    """Queries of the panels, by title and number."""
    panels = list_panels(json.loads(dashboard.read_text()))
    return {
        f"{panel['title']} {target['refId']}": target["expr"] for panel in panels for target in panel.get("targets", [])
    }


def fill_variables(expression: str, values: Mapping[str, str] | None = None, interval: str = "1m") -> str:
    """Return a query without Grafana's variables. A variable without a value matches everything."""
    text = re.sub(r"\$__(rate_interval|interval|range)\b", interval, expression)
    known = values or {}
    return re.sub(r"\$(cluster|namespace|service|model|tenant)\b", lambda match: known.get(match[1], ".*"), text)
