"""Read the RayServices of a fleet from a live cluster."""

from collections.abc import Iterable, Mapping
from typing import Any

from rayhelm.check.diff.side import RAY_SERVICE, ReleaseKey, Side, SideRelease
from rayhelm.check.forecast.service import LiveCluster, LiveService
from rayhelm.check.forecast.stored import store
from rayhelm.deploy.advice import how_to_get_kuberay
from rayhelm.errors import MissingError, RayhelmError
from rayhelm.facts.versions import versions
from rayhelm.live.cluster.fields import parse_objects
from rayhelm.live.cluster.kinds import DEPLOYMENTS, RAY_CLUSTERS, RAY_SERVICES, Kind
from rayhelm.live.cluster.reader import AbsentError, ClusterReader, ForbiddenError

__all__ = ["read_live"]

_VERSION = "ray.io/kuberay-version"
_INSTANCE, _PART_OF = "app.kubernetes.io/instance", "app.kubernetes.io/part-of"
Object = dict[str, Any]


def read_live(reader: ClusterReader, new: Side, cluster: str) -> Side:
    """Read the RayServices in the namespaces of the fleet. `cluster` is the name in `new`.

    Raises MissingError if the cluster does not answer or has no KubeRay, RayhelmError if reading is forbidden.
    """
    namespaces = sorted({key[2] for key in new.releases if key[0] == cluster and key[1] == RAY_SERVICE})
    notes = [f"cluster {reader.name}: only RayServices are compared with the cluster"]
    services = [item for name in namespaces for item in _read(reader, RAY_SERVICES, name, notes)]
    clusters = {
        (item["metadata"]["namespace"], item["metadata"]["name"]): item
        for name in namespaces
        for item in _read(reader, RAY_CLUSTERS, name, notes)
    }
    kuberay = _find_version(reader, clusters.values()) or new.kuberay.get(cluster, "")
    wanted = {key for key in new.releases if key[0] == cluster}
    releases: dict[ReleaseKey, SideRelease] = {}
    for item in services:
        labels = item["metadata"].get("labels", {})
        name = labels.get(_INSTANCE, item["metadata"]["name"])
        key = (cluster, RAY_SERVICE, item["metadata"]["namespace"], name)
        if key in wanted or labels.get(_PART_OF) == "rayhelm":
            releases[key] = _build(key, item, clusters, kuberay)
    return Side(f"cluster {reader.name}", "", releases, {cluster: kuberay}, None, tuple(notes))


def _build(key: ReleaseKey, service: Object, clusters: Mapping[tuple[str, str], Object], kuberay: str) -> SideRelease:
    status = service.get("status", {})
    stored = store(service, kuberay)
    active, pending = (
        _find(clusters, key[2], status.get(which, {}).get("rayClusterName", ""), stored, kuberay)
        for which in ("activeServiceStatus", "pendingServiceStatus")
    )
    live = LiveService(stored, active, pending)
    release = SideRelease(RAY_SERVICE, key[3], key[2], key[0], None, source=service["metadata"]["name"], live=live)
    # The manifest as it was applied; other objects of the release are not read.
    release.__dict__["service"] = service
    return release


def _find(
    clusters: Mapping[tuple[str, str], Object], namespace: str, name: str, stored: Mapping[str, Any], kuberay: str
) -> LiveCluster | None:
    found = clusters.get((namespace, name)) if name else None
    if found is None:
        return None
    version = found["metadata"].get("annotations", {}).get(_VERSION, "").removeprefix("v") or kuberay
    spec = store({"spec": {"rayClusterConfig": found["spec"]}}, kuberay)["spec"]["rayClusterConfig"]
    _ignore_autoscaler(spec, stored["spec"].get("rayClusterConfig", {}))
    return LiveCluster(spec, version, stored["spec"].get("serveConfigV2", ""))


def _ignore_autoscaler(spec: Object, manifest: Mapping[str, Any]) -> None:
    """Replace what Ray's autoscaler writes into the groups of a RayCluster by what the RayService has."""
    wanted = {group.get("groupName"): group for group in manifest.get("workerGroupSpecs", [])}
    for group in spec.get("workerGroupSpecs", []):
        own = wanted.get(group.get("groupName"), {})
        group.pop("replicas", None)
        group |= {"scaleStrategy": {}} | {key: own[key] for key in ("replicas", "scaleStrategy") if key in own}


def _find_version(reader: ClusterReader, clusters: Iterable[Object]) -> str:
    """Return the version of the operator: the tag of its image, else the one that wrote a RayCluster; else empty."""
    try:
        found = _parse(DEPLOYMENTS, reader.list(DEPLOYMENTS, labels="app.kubernetes.io/name=kuberay-operator"), [])
    except (ForbiddenError, AbsentError):
        found = []
    tags = [
        container.get("image", "").rpartition(":")[2].removeprefix("v")
        for item in found
        for container in item["spec"]["template"]["spec"]["containers"]
    ]
    versions = [item["metadata"].get("annotations", {}).get(_VERSION, "").removeprefix("v") for item in clusters]
    return next((each for each in (*tags, *versions) if _is_version(each)), "")


def _is_version(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 3 and all(part.isdigit() for part in parts)


def _parse(kind: Kind, items: Iterable[Object], notes: list[str]) -> list[Object]:
    """Return the objects; one with a field of another type is a note, and does not stop the comparison of others."""
    found, malformed = parse_objects(kind, items)
    notes += [f"{error}: it is not compared" for error in malformed]
    return found


def _read(reader: ClusterReader, kind: Kind, namespace: str, notes: list[str]) -> list[Object]:
    try:
        return _parse(kind, reader.list(kind, namespace), notes)
    except ForbiddenError as error:
        raise RayhelmError(
            f"cluster {reader.name} forbids reading {kind.plural} in namespace {namespace}: {error}\n"
            f"  fix:\n    kubectl create role rayhelm-read --verb=get,list --resource={kind.resource} -n {namespace}"
        ) from None
    except AbsentError:
        raise MissingError(
            f"cluster {reader.name} has no kind {kind.name}: KubeRay is not installed",
            f"{how_to_get_kuberay(versions().kuberay.default)}\n# or compare two fleet files",
        ) from None
