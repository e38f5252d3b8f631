"""Simulated nodes: what the real scheduler places real pods on, where there is neither a machine nor a GPU.

simulated   nodes of one cluster of a fleet, one for each host of its pools
hosts       what a host is: its card, size, labels, taints
labels/     labels that each vendor's own discovery writes, as data
manifest    a host as a Node
volumes     volumes for claims of model weights
kwok        KWOK's command line; stages/ has what it does to nodes and pods
kubectl     sends manifests to a cluster
kubelet     a node that dies and comes back
"""

from testbed.nodes.kubelet import start_kubelet, stop_kubelet
from testbed.nodes.kwok import kwok_arguments, kwok_environment
from testbed.nodes.simulated import cpu_nodes, pool_of, simulated, uniform
from testbed.nodes.volumes import volumes

__all__ = [
    "cpu_nodes",
    "kwok_arguments",
    "kwok_environment",
    "pool_of",
    "simulated",
    "start_kubelet",
    "stop_kubelet",
    "uniform",
    "volumes",
]
