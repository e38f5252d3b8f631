"""The running pods of Ray have the image, environment, resources and start parameters of their RayService."""

import re
from collections.abc import Iterator
from typing import Any

from rayhelm.facts.quantities import parse_quantity
from rayhelm.live.cluster.kinds import PODS, RAY_CLUSTERS, RAY_SERVICES
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.differences import find_differences, format_value
from rayhelm.live.doctor.facts import Facts, Object, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

_MOST = 4
_COMPARED = ("image", "env", "resources")
_NUM_GPUS = re.compile(r"--num-gpus=(\d{1,9})")


def _find(facts: Facts) -> Iterator[Finding]:
    rendered = {name_object(item): item for item in facts.manifests if item["kind"] == "RayService"}
    return find_in_each(
        facts.get_all(RAY_SERVICES),
        lambda service: _find_in_service(service, rendered.get(name_object(service), service), facts),
    )


def _find_in_service(service: Object, rendered: Object, facts: Facts) -> Iterator[Finding]:
    name, namespace = service["metadata"]["name"], namespace_of(service)
    active = (service.get("status", {}).get("activeServiceStatus") or {}).get("rayClusterName", "")
    cluster = facts.find(RAY_CLUSTERS, namespace, active)
    if cluster is None:
        return
    wanted = _list_groups(rendered["spec"]["rayClusterConfig"])
    has_edit = not list(_compare_groups(wanted, _list_groups(cluster["spec"])))
    strategy = (service["spec"].get("upgradeStrategy") or {}).get("type", "NewCluster")
    for pod in facts.get_all(PODS, {namespace}):
        labels = labels_of(pod)
        if labels.get("ray.io/cluster") != active or labels.get("ray.io/is-ray-node") != "yes":
            continue
        group = wanted.get("head" if labels.get("ray.io/node-type") == "head" else labels.get("ray.io/group", ""))
        if group is None:
            continue
        found = [*_compare(group, pod["spec"]["containers"][0]), *_compare_start(group, pod)]
        if found:
            yield _describe(pod, found, strategy, is_pod_old=has_edit, service=f"{namespace}/{name}")


def _describe(
    pod: Object, found: list[tuple[str, Any, Any]], strategy: str, *, is_pod_old: bool, service: str
) -> Finding:
    parts = [
        f"{path}: {format_value(is_now)} instead of {format_value(wanted)}" for path, wanted, is_now in found[:_MOST]
    ]
    namespace, name = service.split("/")
    if is_pod_old:
        cause = "the RayCluster has the right values, and the pod was started before, or changed by hand"
        fix = f"kubectl delete pod {pod['metadata']['name']} -n {namespace}    # KubeRay creates a new one"
    elif strategy == "None":
        cause = "upgradeStrategy is None, so an edit of pods waits until the RayService is recreated"
        fix = (
            f"kubectl delete rayservice {name} -n {namespace}    # then apply the release: the service is down"
            " meanwhile;"
            " or free GPUs and set upgrade.strategy: NewCluster"
        )
    else:
        cause = "the edit has not reached the RayCluster: the release was not applied, or an upgrade is under way"
        fix = f"kubectl describe rayservice {name} -n {namespace}"
    return Finding(
        object=name_object(pod),
        evidence="; ".join(parts) + (f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""),
        cause=cause,
        fix=fix,
    )


def _list_groups(spec: Object) -> dict[str, Object]:
    """Return what each group sets: its first container, and the GPUs that Ray counts."""
    groups = {"head": spec["headGroupSpec"]} | {each["groupName"]: each for each in spec.get("workerGroupSpecs") or []}
    return {
        name: {
            "container": group["template"]["spec"]["containers"][0],
            "gpus": group.get("resources", {}).get("GPU") or group.get("rayStartParams", {}).get("num-gpus"),
        }
        for name, group in groups.items()
    }


def _compare_groups(wanted: dict[str, Object], found: dict[str, Object]) -> Iterator[tuple[str, Any, Any]]:
    for name, group in wanted.items():
        if name not in found:
            yield name, group, None
        else:
            yield from _compare(group, found[name]["container"])


def _compare(group: Object, container: Object) -> Iterator[tuple[str, Any, Any]]:
    for field in _COMPARED:
        for path, wanted, found in find_differences(group["container"].get(field), container.get(field), field):
            if wanted is not None:  # KubeRay adds variables of its own
                yield path, wanted, found


def _compare_start(group: Object, pod: Object) -> Iterator[tuple[str, Any, Any]]:
    command = " ".join(pod["spec"]["containers"][0].get("args") or [])
    found = _NUM_GPUS.search(command)
    if group["gpus"] and found and parse_quantity(found[1]) != parse_quantity(group["gpus"]):
        yield "ray start --num-gpus", group["gpus"], found[1]


CHECK = Check(
    title="arguments of the running pods",
    severity=Severity.warning,
    find=_find,
    reads=(RAY_SERVICES, RAY_CLUSTERS, PODS),
)
