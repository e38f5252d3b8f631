"""The KubeRay operator in the cluster, in pods, where it finds Ray by the cluster's own names."""

from pathlib import Path

import yaml

from live.kit.cluster import Cluster
from testbed.control_plane.addons import MANIFESTS
from testbed.tools import crd_files, found

__all__ = ["install_operator"]

HERE = Path(__file__)
RIGHTS = "rayhelm-testbed-kuberay-operator"


def install_operator(cluster: Cluster) -> str:
    """CRDs, rights and a Deployment that is ready; returns the operator's version."""
    version = found("kuberay-operator").version
    files = crd_files("kuberay", version=version)
    cluster.kubectl.apply_files(*files)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", *(f"--filename={file}" for file in files))
    cluster.apply(_rights())
    cluster.kubectl.apply_files(HERE.with_suffix(".yaml"))
    cluster.kubectl("rollout", "status", "deployment/kuberay-operator", "--namespace=kuberay-system", "--timeout=300s")
    return version


def _rights() -> dict[str, object]:
    """The ClusterRole that the simulated cluster gives its operator, which is what KubeRay's own chart grants."""
    objects = (item for file in MANIFESTS for item in yaml.safe_load_all(file.read_text()))
    (role,) = (item for item in objects if (item["kind"], item["metadata"]["name"]) == ("ClusterRole", RIGHTS))
    found: dict[str, object] = role
    return found
