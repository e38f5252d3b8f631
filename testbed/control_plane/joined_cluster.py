"""Whether an existing cluster may be joined.

A testbed takes over all objects of KubeRay, and pods on its simulated nodes never run. A cluster with other workloads
must not be joined by mistake."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rayhelm.errors import MissingError, UsageError
from rayhelm.facts import load_catalog
from rayhelm.facts.versions import versions
from rayhelm.live.cluster.kubectl import MANAGER, Kubectl, KubectlError
from testbed.control_plane.addons import NAMESPACE
from testbed.control_plane.home import Home
from testbed.control_plane.kubeconfig import server_of
from testbed.nodes.manifest import SIMULATED

__all__ = ["JoinedCluster", "inspect_cluster"]

PATIENCE = "--request-timeout=60s"
SYSTEM = ("kube-", "local-path-storage", NAMESPACE)
"""Prefixes of the namespaces of a new cluster."""
KUBERAY = ("rayservices", "rayclusters", "rayjobs")
SHOWN = 8
"""Maximum number of listed objects."""


@dataclass(frozen=True)
class JoinedCluster:
    """A reachable cluster that may be joined."""

    kubeconfig: str
    """Text of a kubeconfig without references to other files."""
    server: str
    """URL of its API server."""
    kubernetes: str
    """Version of its API server: `1.36.1`."""
    uid: str
    """UID of the namespace kube-system, which differs between clusters at the same address."""

    @property
    def notes(self) -> list[str]:
        """Warnings before the cluster is changed."""
        minor, supported = ".".join(self.kubernetes.split(".")[:2]), versions().kubernetes.supported
        return (
            [] if minor in supported else [f"Kubernetes {minor} is not one of {', '.join(supported)}: it was not tried"]
        )


def inspect_cluster(
    kubeconfig: Path, home: Home, program: Path, *, before: str = "", anyway: bool = False
) -> JoinedCluster:
    """Read what a cluster is, without changing it. `before` is the UID of the cluster that was joined earlier.

    Raises UsageError for a file that is no kubeconfig and for a cluster that others use (unless `anyway`),
    MissingError for one that does not answer or does not let us do what a testbed does."""
    text = _inline_kubeconfig(kubeconfig, program)
    with tempfile.TemporaryDirectory(prefix="rayhelm-join-") as folder:
        path = Path(folder, "kubeconfig")
        path.touch(mode=0o600)
        path.write_text(text)
        server = server_of(path)
        kubectl = Kubectl(program, path)
        joined = JoinedCluster(text, server, _read_version(kubectl, kubeconfig, server), _read_uid(kubectl))
        if _read_mark(kubectl) == str(home.folder) and home.folder.exists() and not home.is_joined:
            raise UsageError(f"{kubeconfig} is the kubeconfig of this control plane: use `up` without --join")
        found = [] if anyway or joined.uid == before else list(_find_other_uses(kubectl, home))
    if found:
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        lines = "".join(f"\n  - {line}" for line in [*found[:SHOWN], *more])
        raise UsageError(
            f"{kubeconfig} names a cluster with other workloads:{lines}\nA testbed installs its own KubeRay "
            "operator and CRDs, and simulated nodes on which pods do not run. To join the cluster anyway: --anyway"
        )
    return joined


def _inline_kubeconfig(kubeconfig: Path, program: Path) -> str:
    """Return the kubeconfig with the certificates of other files included, because their paths are not valid in another
    folder."""
    try:
        text = Kubectl(program, kubeconfig)("config", "view", "--raw", "--minify", "--flatten")
    except KubectlError as error:
        raise UsageError(f"{kubeconfig} names no cluster: {error.said.removeprefix('error: ')}") from None
    clusters = (yaml.safe_load(text) or {}).get("clusters") or [{}]
    if not (clusters[0].get("cluster") or {}).get("server"):
        raise UsageError(f"{kubeconfig} names no cluster: its current context has no server")
    return text


def _read_version(kubectl: Kubectl, kubeconfig: Path, server: str) -> str:
    try:
        said = json.loads(kubectl("version", "--output=json", PATIENCE))["serverVersion"]["gitVersion"]
        if kubectl("auth", "can-i", "*", "*", "--all-namespaces", PATIENCE).strip() == "yes":
            return str(said).removeprefix("v").partition("+")[0].partition("-")[0]
    except KubectlError as error:
        if error.said not in ("", "no"):
            raise MissingError(
                f"the cluster of {kubeconfig} does not answer at {server}: {error.said.splitlines()[-1]}",
                "start it, or name the kubeconfig of one that runs",
            ) from None
    raise MissingError(
        f"the user of {kubeconfig} is not an administrator at {server}",
        "use the kubeconfig of an administrator: a testbed creates CRDs, roles and nodes",
    )


def _read_uid(kubectl: Kubectl) -> str:
    return kubectl("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}", PATIENCE)


def _read_mark(kubectl: Kubectl) -> str:
    """Return the folder of the testbed that runs this cluster; empty if there is none."""
    where = f"--namespace={NAMESPACE}"
    return kubectl(
        "get", "configmap", NAMESPACE, where, "--ignore-not-found", "--output=jsonpath={.data.home}", PATIENCE
    )


def _find_other_uses(kubectl: Kubectl, home: Home) -> Iterator[str]:
    """Yield one line for each use of the cluster by others."""
    if (mark := _read_mark(kubectl)) and mark != str(home.folder):
        yield f"it belongs to the testbed in {mark}"
    domains = {gpu.resource.partition("/")[0] for gpu in load_catalog().gpus()}
    for node in _list_items(kubectl, "nodes", f"--selector=!{SIMULATED}"):
        gpus = [name for name in node["status"].get("capacity", {}) if name.partition("/")[0] in domains]
        if gpus:
            yield f"node {node['metadata']['name']} has {', '.join(sorted(gpus))}"
    yield from _find_kuberay(kubectl)
    for item in _list_items(kubectl, "deployments,statefulsets", "--all-namespaces"):
        if not item["metadata"]["namespace"].startswith(SYSTEM):
            yield f"{item['kind']} {item['metadata']['name']} in {item['metadata']['namespace']}"


def _find_kuberay(kubectl: Kubectl) -> Iterator[str]:
    names = [f"{kind}.ray.io" for kind in KUBERAY]
    for crd in _list_items(kubectl, "crd", *names, "--ignore-not-found", "--show-managed-fields"):
        name = crd["metadata"]["name"]
        if MANAGER not in {entry.get("manager") for entry in crd["metadata"].get("managedFields", [])}:
            yield f"KubeRay is installed: no testbed has created CRD {name}"
        # A new CRD is not served until it is established.
        conditions = {item["type"]: item["status"] for item in crd.get("status", {}).get("conditions") or []}
        for item in _list_items(kubectl, name, "--all-namespaces") if conditions.get("Established") == "True" else ():
            if not item["metadata"].get("ownerReferences"):
                yield f"{item['kind']} {item['metadata']['name']} in {item['metadata']['namespace']}"


def _list_items(kubectl: Kubectl, *what: str) -> list[dict[str, Any]]:
    said = kubectl("get", *what, "--output=json", PATIENCE)
    found: dict[str, Any] = json.loads(said) if said.strip() else {"items": []}
    items: list[dict[str, Any]] = found.get("items", [found])
    return items
