"""Import images from a layout into the node's containerd, without layers that it already has."""

import subprocess
from contextlib import suppress

from rayhelm.errors import RayhelmError
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.processes import wait_until
from testbed.images import LAYOUTS, Layout, of_program
from testbed.node.home import NODE, NodeHome
from testbed.node.namespace import enter
from testbed.node.settings import CONTAINERD
from testbed.node.shell import output
from testbed.tools import program

__all__ = ["give", "give_by_digest", "small_one", "small_ones", "wait_until_reported"]

SMALL = {"agnhost": ("agnhost", ("pause",)), "coredns": ("coredns", ()), "kuberay-operator": ("kuberay-operator", ())}
"""Images of one program, and the arguments of the program."""


def small_ones() -> list[Layout]:
    """Build the images that every node has, each with the tag `node`."""
    return [small_one(name) for name in SMALL]


def small_one(name: str) -> Layout:
    """Build one of them."""
    tool, arguments = SMALL[name]
    layout = Layout(LAYOUTS / name)
    of_program(layout, "node", program(tool), arguments)
    return layout


def give(home: NodeHome, pid: int, layout: Layout, tag: str) -> str:
    """Import an image into the node's containerd, and return its reference."""
    reference = layout.reference(tag)
    manifest = layout.blobs(tag)[0]
    if any(line.split()[:3:2] == [reference, manifest] for line in _run_ctr(pid, "images", "ls").splitlines()):
        return reference
    there = frozenset(_run_ctr(pid, "content", "ls", "--quiet").split())
    command = _build_command(pid, "images", "import", "-")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as reader:
        assert reader.stdin
        with suppress(BrokenPipeError):  # the error of the reader is reported below
            # The import needs the manifest, even if the node has all layers.
            layout.export(tag, reader.stdin, without=there - {manifest})
        said = reader.communicate()[0].decode(errors="replace")
    if reader.returncode:
        raise RayhelmError(f"{reference} could not be imported: {said.strip()}")
    return reference


def give_by_digest(home: NodeHome, pid: int, layout: Layout, tag: str) -> str:
    """Import an image, and return its reference with the digest of its manifest. No registry has the image: the node
    finds it by this name only if containerd has it as a name."""
    reference = give(home, pid, layout, tag)
    pinned = f"{reference.rpartition(':')[0]}@{layout.digest(tag)}"
    _run_ctr(pid, "images", "tag", "--force", reference, pinned)
    return pinned


def wait_until_reported(kubectl: Kubectl, reference: str) -> None:
    """Wait until the API server lists the image of the node, up to 30 s after the import."""

    def reported() -> bool | None:
        images = kubectl.get("node", NODE)["status"].get("images", ())
        return any(reference in (image["names"] or ()) for image in images) or None

    wait_until(reported, what=f"the node to list {reference}", timeout=120, poll=1)


def _run_ctr(pid: int, *arguments: str) -> str:
    return output(*_build_command(pid, *arguments))


def _build_command(pid: int, *arguments: str) -> list[str]:
    return enter(pid, [str(program("ctr")), f"--address={CONTAINERD}", "--namespace=k8s.io", *arguments])
