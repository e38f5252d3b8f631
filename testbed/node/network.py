"""The addresses of a node: a private /16 network of this computer."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from rayhelm.errors import UsageError

__all__ = ["DEFAULT", "Network"]

DEFAULT = "10.200.0.0/16"


@dataclass(frozen=True)
class Network:
    """A /16 network, divided into the link between host and node, the pods, and the services."""

    all: IPv4Network

    @classmethod
    def parse(cls, text: str) -> "Network":
        """Parse a network. Raises UsageError if it is not a private /16."""
        try:
            network = IPv4Network(text)
        except ValueError as error:
            raise UsageError(f"--network {text}: {error}; {DEFAULT}, say") from None
        if network.prefixlen != 16 or not network.is_private:
            raise UsageError(f"--network {text} is not a private /16 network; example: {DEFAULT}")
        return cls(network)

    @classmethod
    def of(cls, server: str) -> "Network":
        """Return the network of a node from the URL of its API server."""
        address = IPv4Address(server.removeprefix("https://").partition(":")[0])
        return cls(IPv4Network((address, 16), strict=False))

    @property
    def cable(self) -> IPv4Network:
        return IPv4Network((self.all[0], 24))

    @property
    def node(self) -> IPv4Address:
        return self.all[1]

    @property
    def host(self) -> IPv4Address:
        """Address of this computer in the network of the node."""
        return self.all[2]

    @property
    def pods(self) -> IPv4Network:
        return IPv4Network((self.all[256], 24))

    @property
    def services(self) -> IPv4Network:
        return IPv4Network((self.all[4096], 20))

    @property
    def api(self) -> IPv4Address:
        """Address of the Service `kubernetes`: the first of the services."""
        return self.services[1]

    @property
    def dns(self) -> IPv4Address:
        return self.services[10]

    def clashes(self, taken: dict[str, str]) -> list[str]:
        """Describe the networks that overlap with this one. `taken`: owner by network."""
        return [f"{owner} has {text}" for text, owner in taken.items() if self.all.overlaps(IPv4Network(text))]
