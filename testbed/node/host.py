"""Whether this computer can be a node. Everything that is missing is reported together, before anything is changed."""

import json
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rayhelm.errors import MissingError
from testbed.images import LAYOUTS, Layout
from testbed.node import cgroups
from testbed.node.home import NodeHome
from testbed.node.network import Network
from testbed.node.shell import output, tried
from testbed.tools import missing
from testbed.tools.catalog import tools
from testbed.tools.checkout import HERE

__all__ = ["PACKAGES", "Facts", "Room", "check", "lacks", "look", "overlaps", "packages", "taken"]

PACKAGES = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "ip": "iproute2",
    "nft": "nftables",
    "iptables": "iptables",
    "ipset": "ipset",
    "conntrack": "conntrack",
    "socat": "socat",
}
"""Debian package by program."""
IMAGES = {"debootstrap": "debootstrap", "dpkg-deb": "dpkg"}
"""Debian package by program, for building the images of Ray pods."""

BUILD = ["gcc", "libc6-dev", "libseccomp-dev"]
SECCOMP = Path("/usr/include/seccomp.h")

NAMESPACES = ("--mount", "--net", "--pid", "--ipc", "--uts", "--fork")

FEATURES = {
    ("overlayfs, which stacks the layers of images (CONFIG_OVERLAY_FS)", "overlay"): """
        mount -t tmpfs none /mnt && cd /mnt && mkdir a b c e &&
        mount -t overlay -o lowerdir=a,upperdir=b,workdir=c none e""",
    ("pairs of interfaces (CONFIG_VETH)", "veth"): "ip link add veth0 type veth peer name veth1",
    ("bridges (CONFIG_BRIDGE)", "bridge"): "ip link add bridge0 type bridge",
    ("rules for what crosses a bridge (CONFIG_BRIDGE_NETFILTER)", "br_netfilter"): """
        [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]""",
    ("nftables with address translation (CONFIG_NF_TABLES, CONFIG_NFT_NAT)", "nf_tables"): """
        nft 'add table t; add chain t c { type nat hook postrouting priority 100; }; add rule t c masquerade'""",
    ("iptables with sets and connection states (CONFIG_IP_SET, CONFIG_NETFILTER_XT_SET)", "ip_set"): """
        ipset create s hash:ip && iptables -w -A FORWARD -m set --match-set s src -j ACCEPT &&
        iptables -w -A FORWARD -m conntrack --ctstate ESTABLISHED -m comment --comment x -j MARK --set-mark 1""",
}
"""Required kernel features, each with its module and a command that tries it in temporary namespaces."""

HIDDEN = (Path("/run"), Path("/var/lib"), Path("/var/log"), Path("/var/run"))
"""Folders of the host that the node replaces with its own."""


@dataclass(frozen=True)
class Room:
    """Free memory and disk space that are needed, GiB."""

    memory: float = 3
    """Memory of a node with a few small pods."""
    disk: float = 3

    @classmethod
    def of(cls, clusters: int) -> "Room":
        """Return the needs for `clusters` Ray clusters of tiny models at the same time, each with a head and a worker.
        The image counts twice: as an archive and unpacked."""
        return cls(cls.memory + 5.5 * clusters, cls.disk + (11 if clusters else 0))


@dataclass(frozen=True)
class Facts:
    """Facts about this computer."""

    absent: tuple[str, ...] = ()
    """Missing programs of PACKAGES and IMAGES."""
    compiler: bool = True
    """runc is built, or can be built."""
    controllers: tuple[str, ...] = ()
    """Missing cgroup controllers."""
    closed: str = ""
    """Why no cgroup can be created; empty if one can."""
    features: tuple[tuple[str, str, str], ...] = ()
    """Missing kernel features, each with the error and a possible fix."""
    clashes: tuple[str, ...] = ()
    """Interfaces and routes of the host that overlap with the node's network."""
    hidden: bool = False
    """The checkout is in a folder that the node replaces with its own."""
    memory: float = 1 << 50
    """Free memory, bytes."""
    disk: float = 1 << 50
    unmade: float = 0
    """Disk space for programs and images that are not built yet, GiB."""


def check(home: NodeHome, network: Network, clusters: int = 0) -> None:
    """Check this computer. Raises MissingError with everything that is missing for a node with `clusters` Ray
    clusters."""
    if platform.system() != "Linux":
        raise MissingError(
            f"a node needs Linux: this is {platform.system()}",
            "ci/kind/up, where Docker is: a cluster with simulated nodes",
        )
    if os.geteuid() != 0:
        raise MissingError(
            "a node needs root: it creates namespaces, interfaces and cgroups",
            "sudo ci/node up\nor, where Docker is: kind create cluster, for real pods; ci/kind/up, for simulated nodes",
        )
    if found := lacks(look(home, network, images=bool(clusters)), network, Room.of(clusters)):
        lines = "\n".join(f"  - {what}\n      {how}" for what, how in found)
        raise MissingError(f"a node needs the following on this computer:\n{lines}")


def look(home: NodeHome, network: Network, *, images: bool = False) -> Facts:
    """Collect the facts. Changes nothing: kernel features are tried in temporary namespaces. `images`: include the
    needs of building the images of Ray."""
    absent = tuple(program for program in (*PACKAGES, *(IMAGES if images else ())) if shutil.which(program) is None)
    return Facts(
        absent=absent,
        compiler=_has_compiler(),
        controllers=tuple(cgroups.lacking()),
        closed=cgroups.closed(),
        features=() if absent else tuple(_try_features()),
        clashes=() if "ip" in absent else tuple(network.clashes(taken(home))),
        hidden=any(home.folder.resolve().is_relative_to(folder) for folder in HIDDEN),
        memory=_measure_free_memory(),
        disk=shutil.disk_usage(_find_existing(home.folder)).free,
        unmade=_estimate_program_disk() + (_estimate_image_disk() if images else 0),
    )


def packages() -> list[str]:
    """Return the missing Debian packages for a node and for images."""
    return _select_packages(
        [program for program in (*PACKAGES, *IMAGES) if shutil.which(program) is None], _has_compiler()
    )


def lacks(facts: Facts, network: Network, room: Room = Room()) -> list[tuple[str, str]]:
    """Return everything that is missing, each with a fix."""
    found: list[tuple[str, str]] = []
    if named := _select_packages(facts.absent, facts.compiler):
        wanted = [
            *facts.absent,
            *(() if facts.compiler else ("a C compiler with libseccomp, which runc is built with",)),
        ]
        found.append((", ".join(wanted), f"Debian, Ubuntu: apt-get install {' '.join(named)}"))
    if facts.controllers:
        found.append(
            (f"the cgroup controllers {', '.join(facts.controllers)}", "the kernel's command line: cgroup_enable=")
        )
    if facts.closed:
        found.append((f"permission to create cgroups: {facts.closed}", "run it outside of a container"))
    found += [(f"kernel feature {feature}: {why}", fix) for feature, why, fix in facts.features]
    if facts.clashes:
        found.append(
            (
                f"the network {network.all}: {'; '.join(facts.clashes)}",
                "use --network 10.210.0.0/16, for example",
            )
        )
    if facts.hidden:
        found.append(
            (
                f"a checkout outside of {', '.join(map(str, HIDDEN))}",
                "clone the repository to /srv",
            )
        )
    if facts.memory < room.memory * 2**30:
        found.append(
            (f"{room.memory:g} GiB of free memory: {facts.memory / 2**30:.1f} are free", "stop other programs")
        )
    if facts.disk < (disk := room.disk + facts.unmade) * 2**30:
        fix = "free disk space, or clone to a larger disk"
        found.append((f"{disk:.0f} GiB of disk: {facts.disk / 2**30:.1f} are free", fix))
    return found


def _select_packages(absent: Sequence[str], compiler: bool) -> list[str]:
    names = {**PACKAGES, **IMAGES}
    return list(dict.fromkeys([*(names[program] for program in absent), *([] if compiler else BUILD)]))


def _try_features() -> Iterator[tuple[str, str, str]]:
    """Yield each missing kernel feature with the error and a possible fix."""
    if why := tried("unshare", *NAMESPACES, "true"):
        yield "namespaces (CONFIG_NAMESPACES)", why, "run it outside of a container, or in a privileged one"
        return  # the other features cannot be tried without namespaces
    for (feature, module), trial in FEATURES.items():
        if why := tried("unshare", *NAMESPACES, "bash", "-c", trial):
            yield feature, why.splitlines()[-1], f"modprobe {module}; if the module does not exist, use another kernel"


def _has_compiler() -> bool:
    """Return whether runc is built, or a C compiler can build it."""
    return "runc" not in missing(group="node") or (shutil.which("gcc") is not None and SECCOMP.exists())


def _estimate_program_disk() -> float:
    """Return the disk space for programs that are not built yet, GiB."""
    every = tools(HERE)
    modules = {module.name: module.recipe.disk for name in missing(group="node") if (module := every[name].module)}
    return sum(disk.modules + disk.cache + disk.programs for disk in modules.values()) / 1024


def _estimate_image_disk() -> float:
    return 0 if "cpu" in Layout(LAYOUTS / "ray").tags() else 6


def _measure_free_memory() -> float:
    """Return the free memory in bytes, as set-up measures it: within the limit of a container."""
    return float(output("bash", "-c", f"source {HERE.root}/ci/host.bash; free_memory_gib")) * 2**30


def taken(home: NodeHome) -> dict[str, str]:
    """Return the owner of each network of this computer, without the remains of this node."""
    routes = json.loads(output("ip", "-json", "-4", "route", "show", "table", "main") or "[]")
    addresses = json.loads(output("ip", "-json", "-4", "address", "show") or "[]")
    return overlaps(routes, addresses, ours=home.cable)


def overlaps(routes: list[dict[str, str]], addresses: list[dict[str, object]], *, ours: str) -> dict[str, str]:
    """Return the owner of each network from the output of `ip`."""
    found: dict[str, str] = {}
    for route in routes:
        if route["dst"] != "default" and route.get("dev") != ours:
            found[route["dst"]] = f"a route to {route.get('dev', 'nowhere')}"
    for interface in addresses:
        if interface.get("ifname") == ours:
            continue
        infos = interface.get("addr_info")
        assert isinstance(infos, list)
        for info in infos:
            found[f"{info['local']}/32"] = f"the interface {interface['ifname']}"
    return found


def _find_existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
