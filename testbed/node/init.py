"""The init process of a node: prepare its namespaces, then reap zombies. It imports only the standard library.

`unshare` starts it: python init.py RUN LIB LOG SETTINGS READY.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""Kernel settings that a kubelet would change for the whole computer. Files with the expected values replace them."""


def main(run: Path, lib: Path, log: Path, settings: Path, ready: Path) -> None:
    # Mounts of the host are visible here; mounts made here are visible to pods only.
    mount("--make-rshared", "/")
    for ours, seen in ((run, "/run"), (lib, "/var/lib"), (log, "/var/log")):
        mount("--bind", str(ours), seen)
    for name, value in SETTINGS.items():
        file = settings / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        mount("--bind", str(file), f"/proc/sys/{name}")
    # These settings belong to the network namespace, so they apply only to this node.
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    Path("/proc/sys/net/bridge/bridge-nf-call-iptables").write_text("1")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    socket.sethostname("rayhelm")
    ready.touch()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGCHLD, lambda *_: bury())
    while True:
        signal.pause()


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def bury() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
