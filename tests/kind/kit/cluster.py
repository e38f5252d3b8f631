"""The cluster of kind that `make verify-kind` makes."""

import subprocess
import tempfile
from pathlib import Path

from rayhelm.live.cluster.kubectl import Kubectl
from testbed.images import LAYOUTS, Layout
from testbed.tools import program

__all__ = ["PAGE", "KindCluster"]

PAGE = "docs/get-started/on-a-cluster.md"
"""Its commands install what the tests use."""


class KindCluster:
    """Its API server, as an administrator, and its one node."""

    def __init__(self, name: str, kubeconfig: Path) -> None:
        self.name = name
        self.kubeconfig = kubeconfig
        self.kubectl = Kubectl(program("kubectl"), kubeconfig)

    def give(self, layout: Layout, tag: str) -> str:
        """Load an image into the node with `kind load`, and return its reference."""
        with tempfile.NamedTemporaryFile(dir=LAYOUTS, suffix=".tar") as archive:
            layout.export(tag, archive)
            archive.flush()
            load = [str(program("kind")), "load", "image-archive", archive.name, f"--name={self.name}"]
            subprocess.run(load, check=True)
        return layout.reference(tag)

    def list_all(self, kinds: str, *more: str) -> list[str]:
        """Return the names of the objects in all namespaces: `namespace/name`, or `/name` without one."""
        path = r"jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{'\n'}{end}"
        return self.kubectl("get", kinds, "--all-namespaces", f"--output={path}", *more).split()
