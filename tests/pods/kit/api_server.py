"""The API server of the node as the cluster tests ask theirs, for the parts of their kit that need no more of it."""

from types import SimpleNamespace
from typing import cast

from pykube import HTTPClient, KubeConfig

from cluster.kit import cluster as cluster_tests
from cluster.kit.place import Testbed
from pods.kit.cluster import Cluster

__all__ = ["connect"]


def connect(cluster: Cluster) -> cluster_tests.Cluster:
    """Return the API server. It has no simulated Ray, and its processes are not those of a testbed."""
    kubeconfig = cluster.node.home.kubeconfig
    place = cast(Testbed, SimpleNamespace(kubeconfig=kubeconfig))
    return cluster_tests.Cluster(HTTPClient(KubeConfig.from_file(str(kubeconfig))), place)
