"""This computer as a Kubernetes node: real pods, without Docker.

host (may it?) ──▶ namespace (a network, mounts and processes of its own) ──▶ control plane ──▶ containerd, kubelet,
kube-proxy, kube-router ──▶ CoreDNS ──▶ the KubeRay operator.

All of it lives in Linux namespaces of its own. Whatever it makes of interfaces, rules, mounts and kernel settings is
made in there, and goes when the last of its processes goes, however it went. Two things are outside: one end of a cable
to it, and the cgroups of its pods.
"""

from testbed.node.down import down
from testbed.node.home import NODE, home
from testbed.node.up import up

__all__ = ["NODE", "down", "home", "up"]
