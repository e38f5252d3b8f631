"""The queries of the dashboards and of the alerts, ready to be sent to a Prometheus."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["NamedQuery", "list_queries"]

_VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*(?::\w+)?\}?")
"""A variable of Grafana; `$1` belongs to `label_replace`."""
_DURATION = re.compile(r"\$\{?__(?:rate_interval|interval|range)\}?")


class NamedQuery(NamedTuple):
    """One query, and what shows it."""

    user: str
    """`dashboard fleet` or `alert QueueGrowing`."""
    text: str


def list_queries() -> list[NamedQuery]:
    """Return the queries of all dashboards and alerts. Variables of dashboards select everything."""
    from rayhelm.observe.bundled import load_bundled
    from rayhelm.observe.rules.alerts import load_alerts

    found = [NamedQuery(f"alert {name}", alert.query) for name, alert in load_alerts().items()]
    for name, dashboard in load_bundled().items():
        found += [NamedQuery(f"dashboard {name}", _replace_variables(text)) for text in _list_expressions(dashboard)]
    return found


def _list_expressions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("expr"), str):
            yield value["expr"]
        for item in value.values():
            yield from _list_expressions(item)
    elif isinstance(value, list):
        for item in value:
            yield from _list_expressions(item)


def _replace_variables(text: str) -> str:
    return _VARIABLE.sub(".*", _DURATION.sub("5m", text))
