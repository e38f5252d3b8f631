"""The folder of a node, and the names of its cgroup and interface on the host."""

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
    """The folder of one node, which is removed with it."""

    @property
    def run(self) -> Path:
        """Folder that is mounted as /run in the node."""
        return self.folder / "run"

    @property
    def lib(self) -> Path:
        """Folder that is mounted as /var/lib in the node: images, containers, volumes."""
        return self.folder / "lib"

    @property
    def pod_logs(self) -> Path:
        """Folder that is mounted as /var/log in the node."""
        return self.folder / "pod-logs"

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def kept(self) -> Path:
        """Images that are kept for the next node."""
        return self.folder.with_name(f"{self.folder.name}-images")

    @property
    def mark(self) -> str:
        """Mark of everything that belongs to this node, derived from the path of its folder."""
        return hashlib.sha256(str(self.folder.resolve()).encode()).hexdigest()[:6]

    @property
    def cgroup(self) -> str:
        """Name of the cgroup of its pods, in each hierarchy."""
        return f"rayhelm-node-{self.mark}"

    @property
    def cable(self) -> str:
        """Name of the host's end of the veth pair."""
        return f"rayhelm-{self.mark}"


def home() -> NodeHome:
    """Return the folder of this checkout's node."""
    return NodeHome(ROOT / ".state" / "node")
