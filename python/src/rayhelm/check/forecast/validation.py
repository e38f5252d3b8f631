"""Find what the API server refuses in a RayService, and what KubeRay reports as invalid.

An invalid RayService continues to serve, and the operator applies no edit to it. The rules are those of
`ValidateRayServiceSpec` and `ValidateRayClusterSpec` (ray-operator/controllers/ray/utils/validation.go) that an edit of
a manifest can break; the charts refuse most of them when they render.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rayhelm.check.forecast.edits import match_path
from rayhelm.check.forecast.stored import load_field_facts
from rayhelm.facts.versions import is_at_least

__all__ = ["INCREMENTAL", "find_invalid", "find_refused"]

INCREMENTAL = "NewClusterWithIncrementalUpgrade"
STRATEGIES = ("NewCluster", INCREMENTAL, "None")
TIMEOUT = "ray.io/initializing-timeout"
_NUMBERS = ("replicas", "minReplicas", "maxReplicas", "numOfHosts", "idleTimeoutSeconds", "priority")
_DURATION = re.compile(r"(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+|\d+")


def find_refused(service: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the API server refuses a manifest: a sentence for each value."""
    spec = service["spec"]
    cluster = spec.get("rayClusterConfig", {})
    delay = spec.get("rayClusterDeletionDelaySeconds")
    if delay is not None and (not _is_whole(delay) or delay < 0):
        yield f"spec.rayClusterDeletionDelaySeconds is {delay!r}, and must be a number from 0"
    for group in cluster.get("workerGroupSpecs", []):
        for key in _NUMBERS:
            if key in group and not _is_whole(group[key]):
                yield f"{key} of worker group {group.get('groupName')} is {group[key]!r}, and must be a number"
    for path, value, known in (
        ("authOptions.mode", cluster.get("authOptions", {}).get("mode"), ("disabled", "token")),
        ("upgradeStrategy.type", cluster.get("upgradeStrategy", {}).get("type"), ("Recreate", "None")),
        ("autoscalerOptions.version", cluster.get("autoscalerOptions", {}).get("version"), ("v1", "v2")),
    ):
        if value is not None and value not in known:
            yield f"spec.rayClusterConfig.{path} is {value!r}, and must be {' or '.join(known)}"


def find_invalid(service: Mapping[str, Any], kuberay: str, *, incremental: bool) -> Iterator[str]:
    """Yield why KubeRay reports a stored RayService as invalid.

    `incremental`: the feature gate RayServiceIncrementalUpgrade is on.
    """
    yield from _check_metadata(service)
    yield from _check_upgrade(service["spec"], kuberay, incremental=incremental)
    cluster = service["spec"].get("rayClusterConfig", {})
    yield from _check_groups(cluster)
    yield from _check_head(cluster)
    for path, gate in load_field_facts().gates.items():
        if match_path("spec.rayClusterConfig", path) and path.rpartition(".")[2] in cluster:
            yield f"{path} needs the feature gate {gate}, which is off by default"


def _check_metadata(service: Mapping[str, Any]) -> Iterator[str]:
    timeout = service.get("metadata", {}).get("annotations", {}).get(TIMEOUT)
    if timeout and (not _DURATION.fullmatch(timeout) or not re.search(r"[1-9]", timeout)):
        yield f"annotation {TIMEOUT} is {timeout!r}, and must be a duration (`30m`) or a number of seconds"


def _check_upgrade(spec: Mapping[str, Any], kuberay: str, *, incremental: bool) -> Iterator[str]:
    strategy = spec.get("upgradeStrategy", {})
    kind = strategy.get("type")
    if kind is not None and kind not in STRATEGIES:
        yield f"spec.upgradeStrategy.type is {kind!r}, and must be {', '.join(STRATEGIES)}"
    if kind != INCREMENTAL or not incremental:
        return
    options = strategy.get("clusterUpgradeOptions", {})
    if not spec.get("rayClusterConfig", {}).get("enableInTreeAutoscaling"):
        yield f"{INCREMENTAL} needs enableInTreeAutoscaling: true"
    step, surge, interval = (options.get(key) for key in ("stepSizePercent", "maxSurgePercent", "intervalSeconds"))
    if not options.get("gatewayClassName"):
        yield f"{INCREMENTAL} needs clusterUpgradeOptions.gatewayClassName"
    if step is None or not 0 <= step <= 100:
        yield "clusterUpgradeOptions.stepSizePercent must be from 0 to 100"
    elif is_at_least(kuberay, "1.7.0") and step > (100 if surge is None else surge):
        yield f"clusterUpgradeOptions.stepSizePercent is {step}, larger than maxSurgePercent"
    if not interval or interval < 0:
        yield "clusterUpgradeOptions.intervalSeconds must be greater than 0"


def _check_groups(cluster: Mapping[str, Any]) -> Iterator[str]:
    scales = cluster.get("enableInTreeAutoscaling") is True
    for group in cluster.get("workerGroupSpecs", []):
        name, least, most = (group.get(key) for key in ("groupName", "minReplicas", "maxReplicas"))
        if not group.get("template", {}).get("spec", {}).get("containers"):
            yield f"worker group {name} has no container"
        if not scales and (least is None or most is None):
            yield f"worker group {name} needs minReplicas and maxReplicas, because the autoscaler is off"
        if min(least or 0, most or 0) < 0:
            yield f"worker group {name} has negative replicas"
        if least is not None and most is not None and least > most:
            yield f"worker group {name} has minReplicas {least}, more than its maxReplicas {most}"
        if scales and group.get("suspend"):
            yield f"worker group {name} cannot be suspended while the autoscaler is on"
        if scales and group.get("template", {}).get("spec", {}).get("restartPolicy", "Never") != "Never":
            yield f"worker group {name}: restartPolicy must be Never with autoscaler v2"
        yield from _check_start_params(f"worker group {name}", group)


def _check_start_params(where: str, group: Mapping[str, Any]) -> Iterator[str]:
    params = group.get("rayStartParams", {})
    if "labels" in params:
        yield f"{where}: rayStartParams.labels is not supported; use `labels`"
    if group.get("resources") and (used := {"num-cpus", "num-gpus", "memory", "resources"} & params.keys()):
        yield f"{where}: `resources` cannot be set together with rayStartParams {', '.join(sorted(used))}"


def _check_head(cluster: Mapping[str, Any]) -> Iterator[str]:
    head = cluster.get("headGroupSpec", {})
    containers = head.get("template", {}).get("spec", {}).get("containers", [])
    if not containers:
        yield "the head group has no container"
        return
    yield from _check_start_params("the head group", head)
    if head.get("headService", {}).get("metadata", {}).get("name"):
        yield "headGroupSpec.headService.metadata.name must not be set"
    env = {item.get("name") for item in containers[0].get("env", [])}
    if cluster.get("gcsFaultToleranceOptions") is None and "RAY_REDIS_ADDRESS" in env:
        yield "RAY_REDIS_ADDRESS of the head needs gcsFaultToleranceOptions"
    if cluster.get("gcsFaultToleranceOptions") is not None and (used := {"RAY_REDIS_ADDRESS", "REDIS_PASSWORD"} & env):
        yield f"{', '.join(sorted(used))} of the head cannot be set together with gcsFaultToleranceOptions"
    if cluster.get("autoscalerOptions", {}).get("idleTimeoutSeconds", 0) < 0:
        yield "autoscalerOptions.idleTimeoutSeconds is negative"
    if cluster.get("authOptions", {}).get("mode") == "token" and not cluster.get("rayVersion"):
        yield "authOptions.mode token needs rayVersion"
    if cluster.get("authOptions", {}).get("enableK8sTokenAuth"):
        yield "authOptions.enableK8sTokenAuth is not supported for a RayService"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
