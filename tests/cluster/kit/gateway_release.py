"""What the tests of releases know of the chart gateway."""

from typing import Any

from charts.kit import example, over
from cluster.kit.cluster import Object
from cluster.kit.place import Testbed
from cluster.kit.releases import Chart, Release, Values
from cluster.kit.wait import eventually

__all__ = ["GATEWAY"]


def _values(place: Testbed) -> Values:
    return dict(example("gateway/minimal"))


def _smaller_bodies(values: Values) -> Values:
    return dict(over(values, {"limits": {"bodyBytes": 65536}}))


def _more_cores(values: Values) -> Values:
    return dict(over(values, {"resources": {"limits": {"cpu": "4"}}}))


def _becomes_ready(release: Release) -> Object:
    return eventually(
        lambda: _rolled_out(release), "the gateway's pods being all of one kind, and available", shows=_state(release)
    )


def _rolled_out(release: Release) -> Object:
    """The Deployment, once no pod of another kind is left and the HPA's least number is there; else nothing."""
    found = _deployment(release)
    status, wanted = found.get("status", {}), found["spec"]["replicas"]
    done = status.get("observedGeneration") == found["metadata"]["generation"]
    counts = {status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")}
    return found if done and counts == {wanted} and wanted >= 2 else {}


def _state(release: Release) -> Any:
    return lambda: _deployment(release).get("status")


def _deployment(release: Release) -> Object:
    return release.cluster.one("Deployment", release.name, release.namespace)


def _shows(release: Release) -> Any:
    """None while pods of two kinds stand beside each other."""
    found = _rolled_out(release)
    if not found:
        return None
    config = release.cluster.one("ConfigMap", release.name, release.namespace)
    return found["spec"]["template"], config["data"]


GATEWAY = Chart(
    name="gateway",
    values=_values,
    edits={"in place": _smaller_bodies, "of the pods": _more_cores},
    becomes_ready=_becomes_ready,
    shows=_shows,
    says=lambda release: f"chat: http://chat.{release.namespace}.svc.cluster.local:80/v1, from inside the cluster",
    outlives=(),
)
