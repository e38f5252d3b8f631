"""Allowed connections between pods, tenants and other systems.

flows          data/network/flows.yaml, the list of allowed connections, written by hand
allowed_flows  the flows of one release, with the pods and addresses that its values name
releases       releases as this package reads them
table          the flows of a chart, for its README
"""

from rayhelm.deploy.network.allowed_flows import (
    ALL_PORTS,
    AddressBlock,
    AllowedFlow,
    FlowEnd,
    NamedPods,
    NetworkRelease,
    ReleasePods,
    find_allowed_flows,
)
from rayhelm.deploy.network.flows import load_chart_flows
from rayhelm.deploy.network.releases import to_network_release

__all__ = [
    "ALL_PORTS",
    "AddressBlock",
    "AllowedFlow",
    "FlowEnd",
    "NamedPods",
    "NetworkRelease",
    "ReleasePods",
    "find_allowed_flows",
    "load_chart_flows",
    "to_network_release",
]
