"""Read from a live cluster what its part of a fleet file says."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, get_args

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts import Catalog
from rayhelm.facts.versions import get_kuberay_namespace
from rayhelm.fleet.pools import Cluster
from rayhelm.live.cluster.fields import parse_object, parse_objects
from rayhelm.live.cluster.kinds import DEPLOYMENTS, ENDPOINT_SLICES, NODES, SERVICES
from rayhelm.live.cluster.reader import AbsentError, ClusterReader, ForbiddenError, Object
from rayhelm.live.discovery.machine import Machine, Unusable, group_by_reason, read_machine
from rayhelm.live.discovery.pools import FoundPool, group_machines
from rayhelm.live.discovery.resource_slices import Devices, read_devices
from rayhelm.live.discovery.selectors import has_feature_discovery

__all__ = ["Discovery", "discover"]


@dataclass(frozen=True)
class Discovery:
    """What a cluster has."""

    settings: dict[str, Any]
    """Keys of `clusters.<name>` in a fleet file."""
    notes: tuple[str, ...]
    """What is not known about the cluster, and why."""
    nodes: int
    """Nodes of the cluster, with and without GPUs."""
    pools: list[FoundPool]
    unusable: list[Unusable]
    """Nodes with GPUs that are in no pool."""


def discover(reader: ClusterReader, facts: Catalog, cluster: str = "main") -> Discovery:
    """Read nodes, versions and addresses. Raises FleetError if nodes may not be read, or none offers a GPU for a
    pool."""
    nodes = _list_nodes(reader)
    settings, notes = dict[str, Any](), list[str]()
    devices = _read_devices(reader, notes)
    read = [read_machine(node, facts, devices.get(_get_name(node))) for node in nodes]
    machines = [item for item in read if isinstance(item, Machine)]
    unusable = [item for item in read if isinstance(item, Unusable)]
    if not machines:
        raise FleetError(_explain_no_gpus(reader, len(nodes), unusable))
    _read_versions(reader, settings, notes)
    _read_api_server(reader, settings, notes)
    if any(machine.gpu.vendor == "nvidia" for machine in machines):
        settings["gpuFeatureDiscovery"] = has_feature_discovery(machines)
    return Discovery(settings, tuple(notes), len(nodes), group_machines(machines, cluster, unusable), unusable)


def _list_nodes(reader: ClusterReader) -> list[Object]:
    try:
        return [parse_object(NODES, item) for item in reader.list(NODES)]
    except ForbiddenError as error:
        role = Fix(
            command="kubectl create clusterrole rayhelm-discover --verb=get,list --resource=nodes", why="and bind it"
        )
        raise FleetError(Problem(f"cluster {reader.name} forbids reading its nodes: {error}", fix=role)) from None


def _read_devices(reader: ClusterReader, notes: list[str]) -> dict[str, Devices]:
    try:
        return read_devices(reader)
    except ForbiddenError:
        notes.append("ResourceSlices: not read, because this account may not list resourceslices and deviceclasses")
        return {}


def _get_name(node: Object) -> str:
    metadata = node.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _explain_no_gpus(reader: ClusterReader, nodes: int, unusable: list[Unusable]) -> list[Problem]:
    if unusable:
        return [Problem(f"{names}: {node.reason}", fix=node.fix) for names, node in group_by_reason(unusable)]
    install = "# install the device plugin of your GPU vendor; NVIDIA: chart gpu-operator"
    return [
        Problem(
            f"none of the {nodes} nodes of cluster {reader.name} offers a GPU under `status.allocatable`",
            fix=Fix(command=f"kubectl describe nodes {install}"),
        )
    ]


def _read_versions(reader: ClusterReader, settings: dict[str, Any], notes: list[str]) -> None:
    version = reader.get_path("/version")
    minor = f"{version.get('major')}.{re.sub('[^0-9].*', '', str(version.get('minor', '')))}"
    _set_supported(settings, notes, "kubernetes", minor)
    try:
        operators = reader.list(DEPLOYMENTS, labels="app.kubernetes.io/name=kuberay-operator")
    except ForbiddenError:
        notes.append("kuberay: not read, because this account may not list deployments")
        return
    found = parse_objects(DEPLOYMENTS, operators)[0]
    _read_operator_namespace({operator["metadata"].get("namespace", "") for operator in found}, settings, notes)
    pods = [operator["spec"]["template"]["spec"] for operator in found]
    images = [pod["containers"][0].get("image", "") for pod in pods]
    tags = {match[1] for image in images if (match := re.search(r":v?([0-9]+\.[0-9]+\.[0-9]+)", image))}
    if len(tags) == 1:
        _set_supported(settings, notes, "kuberay", tags.pop())
    else:
        text = f"several versions: {', '.join(sorted(tags))}" if tags else "no Deployment of the chart kuberay-operator"
        notes.append(f"kuberay: {text}")


def _read_operator_namespace(namespaces: set[str], settings: dict[str, Any], notes: list[str]) -> None:
    """Name another namespace than the default one."""
    if len(namespaces) > 1:
        notes.append(f"kuberayOperator.namespace: operators run in several: {', '.join(sorted(namespaces))}")
    elif namespaces and namespaces != {get_kuberay_namespace()}:
        settings["kuberayOperator"] = {"namespace": namespaces.pop()}


def _set_supported(settings: dict[str, Any], notes: list[str], key: str, version: str) -> None:
    supported = get_args(Cluster.model_fields[key].annotation)
    if version in supported:
        settings[key] = version
    else:
        notes.append(f"{key}: the cluster has {version}; this rayhelm supports {', '.join(supported)}")


def _read_api_server(reader: ClusterReader, settings: dict[str, Any], notes: list[str]) -> None:
    """Some network plugins match the address of the Service, some those of the endpoints: both are allowed."""
    try:
        service = reader.get(SERVICES, "kubernetes", "default")
        slices = reader.list(ENDPOINT_SLICES, "default", labels="kubernetes.io/service-name=kubernetes")
    except (ForbiddenError, AbsentError) as error:
        notes.append(f"apiServer.cidrs: not read ({error})")
        return
    addresses = [service["spec"].get("clusterIP", "")]
    addresses += [
        address
        for item in slices
        for endpoint in item.get("endpoints") or []
        for address in endpoint.get("addresses") or []
    ]
    cidrs = sorted({_as_cidr(address) for address in addresses if address and address != "None"})
    settings["apiServer"] = {"cidrs": cidrs}


def _as_cidr(address: str) -> str:
    return f"{address}/{ip_address(address).max_prefixlen}"
