"""A value of a chart that a fleet file overrides, in the plan."""

from typing import Any

from rayhelm.facts.closed import Closed

__all__ = ["OverridePlan"]


class OverridePlan(Closed):
    """One value of a chart that the fleet file overrides."""

    part: str
    """Part of the fleet file: `services.chat`."""
    chart: str
    key: str
    """Key of the chart; for a pool below each of its worker groups."""
    value: Any
    """Value that the fleet file sets, as JSON; null removes an entry."""
