"""The rules for chart platform: groups as Prometheus reads them, without what the values of the chart add."""

from typing import Any

from rayhelm.observe.rules.alerts import GROUPS, Alert, load_alerts
from rayhelm.observe.rules.inhibitions import load_inhibitions
from rayhelm.observe.rules.objectives import list_boundaries
from rayhelm.observe.rules.recordings import RecordingRule, load_recordings

__all__ = ["as_rules_data"]


def as_rules_data() -> dict[str, Any]:
    """Return groups of recording rules and of alerts by name, inhibition rules, and the bucket boundaries of latency
    objectives."""
    alerts = load_alerts().values()
    return {
        "recordings": {f"rayhelm-{group}": list(map(_record, rules)) for group, rules in load_recordings().items()},
        "alerts": {
            f"rayhelm-alerts-{group}": [_alert(alert) for alert in alerts if alert.group == group] for group in GROUPS
        },
        "inhibitions": [each.as_rule() for each in load_inhibitions()],
        "boundaries": list_boundaries(),
    }


def _record(rule: RecordingRule) -> dict[str, Any]:
    return {"record": rule.series, "expr": rule.query} | ({"labels": rule.labels} if rule.labels else {})


def _alert(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.query,
        "for": alert.pending,
        "labels": {"severity": alert.severity} | alert.labels,
        "annotations": {"summary": alert.summary, "description": alert.description.strip()},
    }
