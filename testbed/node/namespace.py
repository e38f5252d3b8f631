"""Linux namespaces that hold a node, and the cable that leads into them."""

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
"""The part whose end is the end of everything in there."""
INSIDE = "eth0"
"""The node's end of the cable."""

SCRIPT = Path(__file__).with_name("init.py")
PATIENCE = 60.0
"""Seconds."""


def start(home: NodeHome) -> tuple[processes.Process, int]:
    """Return the namespaces: the process that holds them, and the first process inside, as the host counts."""
    ready = home.folder / "ready"
    ready.unlink(missing_ok=True)
    folders = (home.run, home.lib, home.pod_logs, home.folder / "settings")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    command = [
        *["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"],
        # Links are followed: a virtual environment may lie where the node sees a folder of its own.
        *["--propagation=slave", str(Path(sys.executable).resolve()), "-I", str(SCRIPT), *map(str, (*folders, ready))],
    ]
    holder = processes.start(command, run=run_of(home, INIT), log=home.log(INIT))
    processes.wait_until(
        lambda: ready.exists() or None, what="Linux namespaces", timeout=PATIENCE, needs=[holder], poll=0.05
    )
    (inside,) = psutil.Process(holder.pid).children()
    return holder, inside.pid


def enter(pid: int, command: Sequence[str]) -> list[str]:
    """Return a command line that runs `command` in there."""
    return ["nsenter", f"--target={pid}", "--mount", "--net", "--pid", "--ipc", "--uts", "--wd=/", "--", *command]


def plug(home: NodeHome, network: Network, pid: int) -> None:
    """A cable from the host to the node, and the host's routes to pods and services through it."""
    bits = network.cable.prefixlen
    output("ip", "link", "add", home.cable, "type", "veth", "peer", "name", INSIDE, "netns", str(pid))
    output("ip", "address", "add", f"{network.host}/{bits}", "dev", home.cable)
    output("ip", "link", "set", home.cable, "up")
    output(*enter(pid, ["ip", "address", "add", f"{network.node}/{bits}", "dev", INSIDE]))
    output(*enter(pid, ["ip", "link", "set", INSIDE, "up"]))
    for there in (network.pods, network.services):
        output("ip", "route", "add", str(there), "via", str(network.node), "dev", home.cable)
    # kubelet and kube-proxy ask for a default route to know their address: it leads nowhere.
    output(*enter(pid, ["ip", "route", "add", "unreachable", "default"]))


def unplug(home: NodeHome) -> None:
    """Take the cable out, and with it its routes. The kernel does so too, a while after the last process has gone."""
    if shutil.which("ip") is None:
        return
    for _ in range(100):
        if tried("ip", "link", "show", home.cable):
            return
        tried("ip", "link", "delete", home.cable)
        time.sleep(0.05)
    raise RayhelmError(f"the interface {home.cable} cannot be removed")
