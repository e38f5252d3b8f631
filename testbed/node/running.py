"""A running node: stop, restart and wait for its parts."""

from dataclasses import dataclass

from testbed.control_plane.health import answers
from testbed.control_plane.home import Part
from testbed.control_plane.running import ControlPlane
from testbed.node.home import NodeHome
from testbed.node.namespace import INIT
from testbed.node.network import Network
from testbed.node.settings import PORTS

__all__ = ["ORDER", "Node"]

ORDER = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *("containerd", "kubelet", "kube-proxy", "kube-router"),
)
"""Order of the start, after the namespaces."""

PATHS = {
    "etcd": "http:/readyz",
    "kube-apiserver": "https:/readyz",
    "kube-controller-manager": "https:/healthz",
    "kube-scheduler": "https:/readyz",
    "containerd": "http:/v1/metrics",
    "kubelet": "http:/healthz",
    "kube-proxy": "http:/healthz",
    "kube-router": "http:/healthz",
}


@dataclass(frozen=True)
class Node(ControlPlane):
    """All parts that one `up` started."""

    home: NodeHome
    network: Network

    def reports_healthy(self, part: Part) -> bool:
        if part.name == INIT:
            return True  # it has no health port: a live process is healthy
        scheme, _, path = PATHS[part.name].partition(":")
        return answers(f"{scheme}://{self.network.node}:{PORTS[part.name]}{path}", self.home)
