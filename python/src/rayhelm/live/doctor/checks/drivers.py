"""The driver of each node runs the CUDA of the Ray image, and all Ray pods of a cluster have one Ray version."""

import re
from collections.abc import Iterator

from rayhelm.live.cluster.kinds import NODES, RAY_CLUSTERS
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, labels_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object
from rayhelm.live.doctor.upgrades import describe_upgrade

_LEAST_DRIVER = {11: 450, 12: 525, 13: 580}
"""Major version of the driver for Linux that each major version of CUDA needs: NVIDIA, CUDA Compatibility, table 1."""
_CUDA = re.compile(r"-cu(\d{2})\d")
_DRIVER = re.compile(r"\d{1,6}", re.ASCII)
_RAY = re.compile(r"^(\d+\.\d+\.\d+)")


def _find(facts: Facts) -> Iterator[Finding]:
    clusters = facts.get_all(RAY_CLUSTERS)
    yield from find_in_each(clusters, _find_ray_versions)
    images = {image for cluster in clusters for image in _list_images(cluster).values()}
    needed = max((int(found[1]) for image in images if (found := _CUDA.search(image))), default=0)
    least = _LEAST_DRIVER.get(needed)
    yield from find_in_each(facts.get_all(NODES), lambda node: _find_old_driver(node, needed, least))


def _find_old_driver(node: Object, needed: int, least: int | None) -> Iterator[Finding]:
    driver = labels_of(node).get("nvidia.com/cuda.driver-version.major") or labels_of(node).get(
        "nvidia.com/cuda.driver.major", ""
    )
    if least and _DRIVER.fullmatch(driver) and int(driver) < least:
        yield Finding(
            object=name_object(node),
            evidence=f"driver {driver}; the image has CUDA {needed}, which needs {least}",
            cause="the driver is too old for the CUDA of the Ray image: engines on this node fail when they start",
            fix=describe_upgrade("gpu-operator", "nvidia/gpu-operator", "gpu-operator", "driver.version=VERSION")
            + f"    # {least} or newer; without the operator's driver: in the image of the node",
        )


def _find_ray_versions(cluster: Object) -> Iterator[Finding]:
    wanted = cluster["spec"].get("rayVersion", "")
    for group, image in _list_images(cluster).items():
        tag = image.partition("@")[0].rpartition(":")[2]
        found = _RAY.match(tag)
        if wanted and found and found[1] != wanted:
            yield Finding(
                object=name_object(cluster),
                evidence=f"rayVersion is {wanted}; the image of group {group} is {image}",
                cause="all pods of a RayCluster need one version of Ray: workers of another version cannot join",
                fix=f"kubectl get rayservice -n {cluster['metadata']['namespace']} -o yaml    # then correct"
                " `clusters.NAME.image` in the fleet file, and render",
            )


def _list_images(cluster: Object) -> dict[str, str]:
    spec = cluster["spec"]
    templates = {"head": spec["headGroupSpec"]["template"]} | {
        group["groupName"]: group["template"] for group in spec.get("workerGroupSpecs") or []
    }
    return {name: template["spec"]["containers"][0].get("image", "") for name, template in templates.items()}


CHECK = Check(
    title="drivers and Ray versions",
    severity=Severity.critical,
    find=_find,
    reads=(NODES, RAY_CLUSTERS),
)
