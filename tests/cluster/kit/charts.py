"""The charts whose releases are tested: a row each."""

from typing import Any

import yaml

from charts.kit import over
from cluster.kit.cluster import Object
from cluster.kit.gateway_release import GATEWAY
from cluster.kit.place import Testbed
from cluster.kit.releases import Chart, Release, Values
from cluster.kit.small import Small
from cluster.kit.tenant_release import TENANT

__all__ = ["ANOTHER_MODEL", "CHARTS", "NOWHERE_TO_RUN", "PLACE", "RAY_SERVICE", "put_config"]

PLACE = Small("releases")


def put_config(release: Release) -> dict[str, Any]:
    """The Serve configuration that Ray got last."""
    puts = release.cluster.place.ray.puts(release.namespace, release.name)
    config: dict[str, Any] = puts[-1].body if puts else {}
    return config


def _values(place: Testbed) -> Values:
    return PLACE.values(place)


def _another_log_level(values: Values) -> Values:
    return dict(over(values, {"serve": {"logging": {"level": "DEBUG"}}}))


def _another_environment(values: Values) -> Values:
    return dict(over(values, {"workerGroups": {"gpu": {"env": {"NCCL_DEBUG": "WARN"}}}}))


def _ray_service_shows(release: Release) -> Any:
    """None between two clusters, and before Ray got one."""
    clusters = release.cluster.all("RayCluster", release.namespace)
    service = release.cluster.one("RayService", release.name, release.namespace)
    if len(clusters) != 1 or put_config(release) != yaml.safe_load(service["spec"]["serveConfigV2"]):
        return None
    workers = release.cluster.all("Pod", release.namespace, {"ray.io/node-type": "worker"})
    debug = [_environment(pod).get("NCCL_DEBUG") for pod in workers]
    return service["spec"], clusters[0]["spec"], debug


def _environment(pod: Object) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in pod["spec"]["containers"][0]["env"]}


RAY_SERVICE = Chart(
    name="ray-service",
    values=_values,
    edits={"in place": _another_log_level, "of the pods": _another_environment},
    becomes_ready=lambda release: release.cluster.becomes_ready(release.name, release.namespace),
    shows=_ray_service_shows,
    says=lambda release: f"http://chat-serve-svc.{release.namespace}.svc.cluster.local:8000/chat/v1",
    outlives=("PersistentVolumeClaim chat-weights",),
)

CHARTS = [RAY_SERVICE, TENANT, GATEWAY]

ANOTHER_MODEL = {
    "serve": {"applications": {"chat": {"models": {"llama-8b": {"revision": "1" * 40}}}}},
    "networkPolicy": {"hub": {"cidrs": ["10.2.0.0/16"]}},
}
NOWHERE_TO_RUN = {"weights": {"download": {"resources": {"limits": {"memory": "900Ti"}}}}}
