"""Linux namespaces of a node, and the veth pair between them and the host."""

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from rayhelm import processes
from rayhelm.errors import RayhelmError
from testbed.control_plane.running import run_of
from testbed.node.home import NodeHome
from testbed.node.network import Network
from testbed.node.shell import output, tried

__all__ = ["INIT", "enter", "plug", "start", "unplug"]

INIT = "namespaces"
"""The init process; its end stops all processes in the namespaces."""
INSIDE = "eth0"
"""Name of the node's end of the veth pair."""

SCRIPT = Path(__file__).with_name("init.py")
PATIENCE = 60.0
"""Seconds."""


def start(home: NodeHome) -> tuple[processes.Process, int]:
    """Create the namespaces. Return the process that holds them, and the pid of the init process on the host."""
    ready = home.folder / "ready"
    ready.unlink(missing_ok=True)
    folders = (home.run, home.lib, home.pod_logs, home.folder / "settings")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    command = [
        *["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"],
        # The resolved path, because a virtual environment may be in a folder that the node replaces.
        *["--propagation=slave", str(Path(sys.executable).resolve()), "-I", str(SCRIPT), *map(str, (*folders, ready))],
    ]
    holder = processes.start(command, run=run_of(home, INIT), log=home.log(INIT))
    processes.wait_until(
        lambda: ready.exists() or None, what="Linux namespaces", timeout=PATIENCE, needs=[holder], poll=0.05
    )
    (inside,) = psutil.Process(holder.pid).children()
    return holder, inside.pid


def enter(pid: int, command: Sequence[str]) -> list[str]:
    """Return a command line that runs `command` in the namespaces."""
    return ["nsenter", f"--target={pid}", "--mount", "--net", "--pid", "--ipc", "--uts", "--wd=/", "--", *command]


def plug(home: NodeHome, network: Network, pid: int) -> None:
    """Create a veth pair between host and node, and routes on the host to pods and services."""
    bits = network.cable.prefixlen
    output("ip", "link", "add", home.cable, "type", "veth", "peer", "name", INSIDE, "netns", str(pid))
    output("ip", "address", "add", f"{network.host}/{bits}", "dev", home.cable)
    output("ip", "link", "set", home.cable, "up")
    output(*enter(pid, ["ip", "address", "add", f"{network.node}/{bits}", "dev", INSIDE]))
    output(*enter(pid, ["ip", "link", "set", INSIDE, "up"]))
    for there in (network.pods, network.services):
        output("ip", "route", "add", str(there), "via", str(network.node), "dev", home.cable)
    # kubelet and kube-proxy read their address from the default route. No packet uses it.
    output(*enter(pid, ["ip", "route", "add", "unreachable", "default"]))


def unplug(home: NodeHome) -> None:
    """Remove the veth pair and its routes. The kernel also removes them, some time after the last process ends."""
    if shutil.which("ip") is None:
        return
    for _ in range(100):
        if tried("ip", "link", "show", home.cable):
            return
        tried("ip", "link", "delete", home.cable)
        time.sleep(0.05)
    raise RayhelmError(f"the interface {home.cable} cannot be removed")
