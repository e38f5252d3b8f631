"""This computer as a Kubernetes node: real pods, without Docker.

host (checks) ──▶ namespace (network, mounts, processes) ──▶ control plane ──▶ containerd, kubelet,
kube-proxy, kube-router ──▶ CoreDNS ──▶ the KubeRay operator.

The node runs in its own Linux namespaces. Its interfaces, firewall rules, mounts and kernel settings exist only there,
and the kernel removes them after its last process ends. Only two things are outside: one end of a veth pair, and the
cgroups of its pods."""

from testbed.node.down import down
from testbed.node.home import NODE, home
from testbed.node.up import up

__all__ = ["NODE", "down", "home", "up"]
