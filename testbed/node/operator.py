"""The KubeRay operator in a pod of a node, so that it resolves the DNS names of the cluster."""

from pathlib import Path

import yaml

from rayhelm.live.cluster.kubectl import Kubectl
from testbed.control_plane.addons import MANIFESTS as ACCOUNTS
from testbed.control_plane.definitions import wait_until_established
from testbed.tools import crd_files, found

__all__ = ["install_operator"]

MANIFEST = Path(__file__).parent / "manifests" / "kuberay-operator.yaml"
RIGHTS = "rayhelm-testbed-kuberay-operator"


def install_operator(kubectl: Kubectl) -> str:
    """Install CRDs, RBAC and the Deployment, wait until it is ready, and return the operator's version."""
    version = found("kuberay-operator").version
    files = crd_files("kuberay", version=version)
    kubectl.apply_files(*files)
    wait_until_established(kubectl, files)
    kubectl.apply(yaml.safe_dump(_read_cluster_role()))
    kubectl.apply_files(MANIFEST)
    kubectl("rollout", "status", "deployment/kuberay-operator", "--namespace=kuberay-system", "--timeout=300s")
    return version


def _read_cluster_role() -> dict[str, object]:
    """Return the ClusterRole of the operator, which is the same as in KubeRay's own chart."""
    objects = (item for file in ACCOUNTS for item in yaml.safe_load_all(file.read_text()))
    (role,) = (item for item in objects if (item["kind"], item["metadata"]["name"]) == ("ClusterRole", RIGHTS))
    found: dict[str, object] = role
    return found
