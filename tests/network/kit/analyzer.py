"""np-guard's netpol-analyzer: reads manifests and lists which connections they allow.

Limits, which these tests share:
* It reads policies. Whether a network plugin enforces them is not tested; kubelets reach the pods of their node.
* It never treats a block of addresses as pods: for 0.0.0.0/0, some network plugins allow pods and the API server too.
* It reads IPv4 only. Pods with host network bypass every policy; the charts have none.
* For an Ingress or a route, it assumes that the controller may be anywhere. The tests give it none: the controller is
  one of the allowed clients of the values.
* It does not list the connections of a pod with itself.
"""

import json
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from network.kit.world import World
from rayhelm.deploy.network import ALL_PORTS
from shared.built import built_program

__all__ = ["AnalyzerConnection", "Block", "list_connections"]


class Block(NamedTuple):
    """Addresses from the first to the last one."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{IPv4Address(self.first)}-{IPv4Address(self.last)}"


class AnalyzerConnection(NamedTuple):
    """A source that may connect to one port of a target; each is a pod (`namespace/name`) or addresses."""

    source: str | Block
    target: str | Block
    port: str
    """`TCP 8000`, `TCP 1-1023`, or `every`."""


def list_connections(world: World) -> list[AnalyzerConnection]:
    """List every connection that the policies allow; none in a world without policies, which the analyzer refuses."""
    if not world.policies:
        return []
    with TemporaryDirectory(prefix="rayhelm-") as folder:
        Path(folder, "world.json").write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": world.objects()})
        )
        command = [built_program("netpol-analyzer"), "list", "--dirpath", folder, "--output", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    # It exits with 0 also if it could not read a file, and reports that on stderr. (`--fail` of 1.2.1 always fails.)
    assert (done.returncode, done.stderr) == (0, "")
    return [
        AnalyzerConnection(_end(found["src"]), _end(found["dst"]), port)
        for found in json.loads(done.stdout)
        for port in _ports(found["conn"])
    ]


def _end(text: str) -> str | Block:
    """`research/chat-head[Pod]`, or `10.0.0.1-10.0.0.9[External]`."""
    name, _, kind = text.partition("[")
    if kind != "Pod]":
        first, last = (int(IPv4Address(part)) for part in name.split("-"))
        return Block(first, last)
    return name


def _ports(text: str) -> Iterator[str]:
    """`All Connections`, or `TCP 53,443,UDP 53`."""
    if text == "All Connections":
        yield ALL_PORTS
        return
    protocol = ""
    for part in text.split(","):
        words = part.split()
        protocol = words[0] if len(words) == 2 else protocol
        yield f"{protocol} {words[-1]}"
