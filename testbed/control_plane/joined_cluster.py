"""Whether an existing cluster may be joined.

A testbed takes over everything that belongs to KubeRay, and pods on its simulated nodes never run. So a cluster that
others use must not be joined by mistake.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rayhelm.catalog import load_catalog
from rayhelm.errors import MissingError, UsageError
from rayhelm.kube.kubectl import MANAGER, Kubectl, KubectlError
from rayhelm.versions import versions
from testbed.control_plane.addons import NAMESPACE
from testbed.control_plane.home import Home
from testbed.control_plane.kubeconfig import server_of
from testbed.nodes.manifest import SIMULATED

__all__ = ["JoinedCluster", "inspect_cluster"]

PATIENCE = "--request-timeout=15s"
SYSTEM = ("kube-", "local-path-storage", NAMESPACE)
"""Namespaces of what a fresh cluster brings: these, and those that begin like this."""
KUBERAY = ("rayservices", "rayclusters", "rayjobs")
SHOWN = 8
"""Lines: who sees so many knows enough."""


@dataclass(frozen=True)
class JoinedCluster:
    """A cluster that answers, and that may be joined."""

    kubeconfig: str
    """The text of a file that needs no other file."""
    server: str
    """URL of its API server."""
    kubernetes: str
    """Version of its API server: `1.36.1`."""
    uid: str
    """What no other cluster has, nor the next one at the same address."""

    @property
    def notes(self) -> list[str]:
        """What a person should know before anything is done to it."""
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
    text = _whole(kubeconfig, program)
    with tempfile.TemporaryDirectory(prefix="rayhelm-join-") as folder:
        path = Path(folder, "kubeconfig")
        path.touch(mode=0o600)
        path.write_text(text)
        server = server_of(path)
        kubectl = Kubectl(program, path)
        joined = JoinedCluster(text, server, _version(kubectl, kubeconfig, server), _uid(kubectl))
        if _mark(kubectl) == str(home.folder) and home.folder.exists() and not home.is_joined:
            raise UsageError(f"{kubeconfig} names this control plane itself: `up` without --join fixes it")
        found = [] if anyway or joined.uid == before else list(_others(kubectl, home))
    if found:
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        lines = "".join(f"\n  - {line}" for line in [*found[:SHOWN], *more])
        raise UsageError(
            f"{kubeconfig} names a cluster that others use:{lines}\nA testbed brings a KubeRay operator and CRDs of "
            "its own, and simulated nodes on which nothing really runs. To do that to it nevertheless: --anyway"
        )
    return joined


def _whole(kubeconfig: Path, program: Path) -> str:
    """Include certificates of other files: their paths are not valid elsewhere."""
    try:
        text = Kubectl(program, kubeconfig)("config", "view", "--raw", "--minify", "--flatten")
    except KubectlError as error:
        raise UsageError(f"{kubeconfig} names no cluster: {error.said.removeprefix('error: ')}") from None
    clusters = (yaml.safe_load(text) or {}).get("clusters") or [{}]
    if not (clusters[0].get("cluster") or {}).get("server"):
        raise UsageError(f"{kubeconfig} names no cluster: its current context has no server")
    return text


def _version(kubectl: Kubectl, kubeconfig: Path, server: str) -> str:
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
        f"{kubeconfig} may not do everything at {server}",
        "a testbed needs an administrator's: it makes CRDs, roles and nodes",
    )


def _uid(kubectl: Kubectl) -> str:
    return kubectl("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}", PATIENCE)


def _mark(kubectl: Kubectl) -> str:
    """Return the folder of the testbed that this cluster is."""
    where = f"--namespace={NAMESPACE}"
    return kubectl(
        "get", "configmap", NAMESPACE, where, "--ignore-not-found", "--output=jsonpath={.data.home}", PATIENCE
    )


def _others(kubectl: Kubectl, home: Home) -> Iterator[str]:
    """What others use in the cluster, one line each."""
    if (mark := _mark(kubectl)) and mark != str(home.folder):
        yield f"it is the testbed of {mark}"
    domains = {gpu.resource.partition("/")[0] for gpu in load_catalog().gpus()}
    for node in _items(kubectl, "nodes", f"--selector=!{SIMULATED}"):
        gpus = [name for name in node["status"].get("capacity", {}) if name.partition("/")[0] in domains]
        if gpus:
            yield f"node {node['metadata']['name']} has {', '.join(sorted(gpus))}"
    yield from _kuberay(kubectl)
    for item in _items(kubectl, "deployments,statefulsets", "--all-namespaces"):
        if not item["metadata"]["namespace"].startswith(SYSTEM):
            yield f"{item['kind']} {item['metadata']['name']} in {item['metadata']['namespace']}"


def _kuberay(kubectl: Kubectl) -> Iterator[str]:
    names = [f"{kind}.ray.io" for kind in KUBERAY]
    for crd in _items(kubectl, "crd", *names, "--ignore-not-found", "--show-managed-fields"):
        name = crd["metadata"]["name"]
        if MANAGER not in {entry.get("manager") for entry in crd["metadata"].get("managedFields", [])}:
            yield f"KubeRay is installed: CRD {name} is not of a testbed"
        # One that was made this moment is not served yet.
        conditions = {item["type"]: item["status"] for item in crd.get("status", {}).get("conditions") or []}
        for item in _items(kubectl, name, "--all-namespaces") if conditions.get("Established") == "True" else ():
            if not item["metadata"].get("ownerReferences"):
                yield f"{item['kind']} {item['metadata']['name']} in {item['metadata']['namespace']}"


def _items(kubectl: Kubectl, *what: str) -> list[dict[str, Any]]:
    said = kubectl("get", *what, "--output=json", PATIENCE)
    found: dict[str, Any] = json.loads(said) if said.strip() else {"items": []}
    items: list[dict[str, Any]] = found.get("items", [found])
    return items
