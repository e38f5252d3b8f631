"""What the tests of releases know of the chart tenant."""

from typing import Any

from charts.kit import example, over
from cluster.kit.place import Testbed
from cluster.kit.releases import Chart, Release, Values

__all__ = ["TENANT"]


def _values(place: Testbed) -> Values:
    """Into the namespace of the release, which the tests make."""
    theirs = {"namespace": {"manage": False}, "defaultServiceAccount": {"manage": False}}
    return dict(over(example("tenant/minimal"), theirs))


def _more_for_upgrades(values: Values) -> Values:
    return dict(over(values, {"quota": {"gpus": {"nvidia.com/gpu": {"upgradeSurge": 7}}}}))


def _more_bounds_and_rights(values: Values) -> Values:
    high = {"quota": {"priorityClasses": {"high": {"pods": 1}}}}
    return dict(over(over(values, high), {"access": {"viewers": {"users": ["ada"]}}}))


def _shows(release: Release) -> Any:
    kinds = ("ResourceQuota", "LimitRange", "NetworkPolicy", "Role", "RoleBinding")
    parts = ("spec", "rules", "subjects")
    return {
        f"{kind} {item['metadata']['name']}": [item.get(part) for part in parts]
        for kind in kinds
        for item in release.cluster.all(kind, release.namespace)
    }


TENANT = Chart(
    name="tenant",
    values=_values,
    edits={"in place": _more_for_upgrades, "of the pods": _more_bounds_and_rights},
    becomes_ready=lambda release: release.cluster.one("ResourceQuota", release.name, release.namespace),
    shows=_shows,
    says=lambda release: "nvidia.com/gpu: 4 = 2 baseline + 2 upgrade surge",
    outlives=(
        "LimitRange chat",
        "NetworkPolicy chat-default-deny",
        "NetworkPolicy chat-dns",
        "ResourceQuota chat",
        "ResourceQuota chat-denied",
        "ResourceQuota chat-other-priority",
    ),
)
