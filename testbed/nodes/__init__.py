"""Simulated nodes: what the real scheduler places real pods on, where there is neither a machine nor a GPU.

simulated   nodes of one cluster of a fleet, one for each host of its pools
hosts       what a host is: its GPU, size, labels, taints
labels/     labels that each vendor's own discovery writes, as data
manifest    a host as a Node
volumes     volumes for claims of model weights
kwok        KWOK's command line; stages/ has what it does to nodes and pods
kubectl     sends manifests to a cluster
kubelet     a node that dies, comes back, or is lost
"""

from testbed.nodes.kubectl import apply
from testbed.nodes.kubelet import lose_node, start_kubelet, stop_kubelet
from testbed.nodes.kwok import kwok_arguments, kwok_environment
from testbed.nodes.simulated import cpu_nodes, pool_of, simulated, uniform
from testbed.nodes.volumes import volumes

__all__ = [
    "apply",
    "cpu_nodes",
    "kwok_arguments",
    "kwok_environment",
    "lose_node",
    "pool_of",
    "simulated",
    "start_kubelet",
    "stop_kubelet",
    "uniform",
    "volumes",
]
