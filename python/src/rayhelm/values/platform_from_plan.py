"""From a plan to the typed values of the chart `platform`, one release for each cluster. Pure."""

from rayhelm.planner.plan import Plan
from rayhelm.spec.fleet import Fleet
from rayhelm.values.platform import PlatformValues

__all__ = ["NAMESPACE", "RELEASE", "platforms_of_plan"]

RELEASE = "platform"
"""Release of each cluster's platform."""
NAMESPACE = "rayhelm-system"
"""Namespace of that release. What operators read lies in theirs."""


def platforms_of_plan(plan: Plan, fleet: Fleet) -> dict[str, PlatformValues]:
    """By cluster, each that a pool belongs to."""
    return {cluster: PlatformValues() for cluster in fleet.clusters if cluster in _with_pools(fleet)}


def _with_pools(fleet: Fleet) -> set[str]:
    return {pool.cluster for pool in fleet.pools.values()}
