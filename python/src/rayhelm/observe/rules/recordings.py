"""Recording rules: series that alerts and dashboards share (`data/recordings/<group>.yaml`)."""

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from rayhelm.facts.closed import Closed
from rayhelm.observe.rules.expressions import expand

__all__ = ["RECORDING_GROUPS", "RecordingRule", "load_recordings"]

RECORDING_GROUPS = ("service", "objectives", "cost")
"""Groups in the order in which Prometheus has to evaluate them."""


class RecordingRule(Closed):
    """One rule of a series. What the series means is in data/metrics/rules.yaml."""

    series: str
    labels: dict[str, str] = {}
    """Labels that distinguish several sources of the series."""
    expr: str

    @property
    def query(self) -> str:
        """Its PromQL."""
        return expand(self.expr, "data/recordings")


@cache
def load_recordings() -> dict[str, tuple[RecordingRule, ...]]:
    """Return the rules by group, in the order in which Prometheus has to evaluate them."""
    return {group: tuple(_read(group)) for group in RECORDING_GROUPS}


def _read(group: str) -> list[RecordingRule]:
    text = files("rayhelm").joinpath(f"data/recordings/{group}.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return [
        RecordingRule(series=series, **rule)
        for series, given in found.items()
        for rule in ([{"expr": given}] if isinstance(given, str) else given)
    ]
