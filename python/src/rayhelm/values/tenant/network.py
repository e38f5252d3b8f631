"""Who may reach whom in the namespace, beside what other charts open for their own pods."""

from typing import Annotated

from pydantic import Field

from rayhelm.values.ray_service.base import Cidr, Name, Port, Text, Values
from rayhelm.values.ray_service.network import Dns, Peer

__all__ = ["Destination", "NetworkPolicy"]


class Destination(Values):
    """Somebody whom pods may call."""

    peer: Peer = Peer()
    """Pods."""
    cidrs: list[Cidr] = []
    """Addresses."""
    ports: Annotated[list[Port], Field(min_length=1)]
    """TCP ports."""


class Opening(Values):
    """What else may pass, for some pods: a gateway that KubeRay makes here for an incremental upgrade, a database."""

    pod_labels: dict[str, Text]
    """Labels of the pods it is for; required, or it would open the whole namespace."""
    callers: dict[Name, Peer] = {}
    """Who may call them, by name."""
    ports: list[Port] = []
    """TCP ports of theirs that callers may reach; empty for all."""
    destinations: dict[Name, Destination] = {}
    """Whom they may call, by name."""


class NetworkPolicy(Values):
    """NetworkPolicies: deny all pods everything, then these."""

    dns: Dns = Dns()
    """The cluster's DNS, which every pod may ask."""
    destinations: dict[Name, Destination] = {}
    """Whom the team's own pods may call, by name: the gateway. Pods of services may not, but what their chart opens."""
    openings: dict[Name, Opening] = {}
    """What else may pass, by name."""
