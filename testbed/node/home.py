"""Where a node keeps what it has, and what it calls its own outside of it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from testbed.control_plane.home import Home
from testbed.tools.checkout import ROOT

__all__ = ["NODE", "NodeHome", "home"]

NODE = "rayhelm"
"""The node's name in the cluster."""


@dataclass(frozen=True)
class NodeHome(Home):
    """A folder that belongs to one node and goes when it goes."""

    @property
    def run(self) -> Path:
        """What the node sees as /run."""
        return self.folder / "run"

    @property
    def lib(self) -> Path:
        """What the node sees as /var/lib: images, containers, volumes."""
        return self.folder / "lib"

    @property
    def pod_logs(self) -> Path:
        """What the node sees as /var/log."""
        return self.folder / "pod-logs"

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def kept(self) -> Path:
        """Images that outlive the node, where it was asked to keep them."""
        return self.folder.with_name(f"{self.folder.name}-images")

    @property
    def mark(self) -> str:
        """Identifies what belongs to this node, also if its folder is lost."""
        return hashlib.sha256(str(self.folder.resolve()).encode()).hexdigest()[:6]

    @property
    def cgroup(self) -> str:
        """Of its pods, in each hierarchy."""
        return f"rayhelm-node-{self.mark}"

    @property
    def cable(self) -> str:
        """The host's end: an interface."""
        return f"rayhelm-{self.mark}"


def home() -> NodeHome:
    """Return the one of this checkout."""
    return NodeHome(ROOT / ".state" / "node")
