"""Gives a node images: from a layout into containerd, layers that it has already excepted."""

import tempfile
from pathlib import Path

from testbed.images import LAYOUTS, Layout, of_program
from testbed.node.home import NodeHome
from testbed.node.namespace import enter
from testbed.node.settings import CONTAINERD
from testbed.node.shell import output
from testbed.tools import program

__all__ = ["give", "small_ones"]

SMALL = {"agnhost": ("agnhost", ("pause",)), "coredns": ("coredns", ()), "kuberay-operator": ("kuberay-operator", ())}
"""Images of one program, and the arguments that are theirs."""


def small_ones() -> list[Layout]:
    """Makes the images that every node has, each tagged `node`."""
    layouts = []
    for name, (tool, arguments) in SMALL.items():
        layout = Layout(LAYOUTS / name)
        of_program(layout, "node", program(tool), arguments)
        layouts.append(layout)
    return layouts


def give(home: NodeHome, pid: int, layout: Layout, tag: str) -> str:
    """Imports an image into the containerd inside, and says its reference."""
    reference = layout.reference(tag)
    manifest = layout.blobs(tag)[0]
    if any(line.split()[:3:2] == [reference, manifest] for line in _ctr(pid, "images", "ls").splitlines()):
        return reference
    there = frozenset(_ctr(pid, "content", "ls", "--quiet").split())
    with tempfile.TemporaryDirectory(dir=home.folder) as folder:
        archive = Path(folder, "image.tar")
        # The manifest is what the import begins with.
        layout.export(tag, archive, without=there - {manifest})
        _ctr(pid, "images", "import", f"--base-name={reference.rpartition(':')[0]}", str(archive))
    return reference


def _ctr(pid: int, *arguments: str) -> str:
    return output(*enter(pid, [str(program("ctr")), f"--address={CONTAINERD}", "--namespace=k8s.io", *arguments]))
