"""Alert and recording rules of Prometheus: `data/alerts/<Name>.yaml`, `data/recordings/<group>.yaml`.

alerts       an alert, its runbook and its tests: one file each
recordings   series that rules and dashboards share
expressions  calls of query functions in an expression
objectives   bucket boundaries of latency objectives
chart_data   the rules for chart platform, which adds what its values say
runbooks     docs/runbooks
files        rule files of a fleet, for a Prometheus without the operator
"""

from rayhelm.observe.rules.alerts import Alert, load_alerts
from rayhelm.observe.rules.recordings import RecordingRule, load_recordings

__all__ = ["Alert", "RecordingRule", "load_alerts", "load_recordings"]
