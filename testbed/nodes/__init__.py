"""Simulated nodes, on which the real scheduler places pods without machines and GPUs.

simulated   nodes of one cluster of a fleet, one for each host of its pools
hosts       a host: its GPU, size, labels, taints
labels/     labels of each vendor's feature discovery, as data
manifest    a host as a Node
volumes     volumes for claims of model weights
kwok        KWOK's command line; stages/ has its rules for nodes and pods
kubectl     sends manifests to a cluster
kubelet     stop and start the kubelet of a node, or delete the node
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
