"""np-guard's netpol-analyzer: reads manifests, says who may reach whom.

What it does not see, so that nobody proves it here:
* It reads policies. That a network enforces them is the network's own; kubelets always reach the pods of their nodes.
* A block of addresses is never pods to it: of 0.0.0.0/0 some networks let through pods and the API server too.
* IPv4 alone. Pods in the network of their node pass every policy; none of ours is there.
* Of an Ingress or a route it supposes that the controller may be anywhere. It is given none: the controller is one of
  the callers that values name.
* The connections of a pod with itself.
"""

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from network.kit.world import World
from rayhelm.errors import MissingError
from rayhelm.network import ALL_PORTS
from testbed.tools import program

__all__ = ["Block", "Connection", "connections"]


class Block(NamedTuple):
    """Addresses from the first to the last one."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{IPv4Address(self.first)}-{IPv4Address(self.last)}"


class Connection(NamedTuple):
    """One port that one may reach of the other: a pod by `namespace/name`, or addresses."""

    source: str | Block
    target: str | Block
    port: str
    """`TCP 8000`, `TCP 1-1023`, or `every`."""


def connections(world: World) -> list[Connection]:
    """Everything that may pass."""
    with TemporaryDirectory(prefix="rayhelm-") as folder:
        Path(folder, "world.json").write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": world.objects()})
        )
        command = [_analyser(), "list", "--dirpath", folder, "--output", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    # It ends well also where it could not read something, and says so there. (Its `--fail` fails always in 1.2.1.)
    assert (done.returncode, done.stderr) == (0, "")
    return [
        Connection(_end(found["src"]), _end(found["dst"]), port)
        for found in json.loads(done.stdout)
        for port in _ports(found["conn"])
    ]


@cache
def _analyser() -> Path:
    try:
        return program("netpol-analyzer")
    except MissingError:
        pytest.skip("no netpol-analyzer: `make tools` builds it")


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
