"""A node comes and goes, in order or by a crash, and this computer is as it was before."""

import os
import signal
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from pods.kit.cluster import Cluster
from rayhelm.errors import MissingError, RayhelmError
from rayhelm.processes import list_members
from testbed.control_plane.running import run_of
from testbed.node import cgroups, down, up
from testbed.node.down import PARTS, alive, left_behind
from testbed.node.home import NodeHome
from testbed.node.init import SETTINGS
from testbed.node.network import Network
from testbed.node.running import Node
from testbed.tools.checkout import HERE

HOME = NodeHome(HERE.root / ".state" / "node-crash")
NETWORK = Network.parse("10.211.0.0/16")


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    yield
    down(HOME)


def computer() -> dict[str, str]:
    """All that a node could change outside of its namespaces."""
    commands = {
        "interfaces": "ip -oneline link | grep -o '^[0-9]*: [^@:]*' | cut -d' ' -f2 | sort",
        "addresses": "ip -oneline -4 address | awk '{print $2, $4}' | sort",
        "routes": "ip -4 route show table all | sort",
        "rules of nftables": "nft list ruleset",
        "rules of iptables": "iptables-save | grep -v '^#' || true",
        "sets": "ipset list -name | sort",
        "mounts": "cut -d' ' -f4- /proc/self/mountinfo | sort",
        "names": "cat /etc/resolv.conf",
        "folders": "ls -A /run /var/lib /var/log /etc /opt /var/run/netns 2>/dev/null || true",
    }
    found = {name: subprocess.check_output(["bash", "-c", text], text=True) for name, text in commands.items()}
    settings = ["net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet", "net/bridge/bridge-nf-call-iptables"]
    found |= {name: Path("/proc/sys", name).read_text() for name in (*SETTINGS, *settings)}
    groups = (tree.rglob(f"{HOME.cgroup}*") for tree in cgroups.trees())
    found["cgroups"] = str(sorted(map(str, (path for found in groups for path in found))))
    found["processes"] = str(alive(HOME))
    found["folder"] = str(HOME.folder.exists())
    # What another node of these tests has is its own.
    return {name: "\n".join(line for line in text.splitlines() if not _others(line)) for name, text in found.items()}


def _others(line: str) -> bool:
    return "10.210." in line or NodeHome(HOME.folder.with_name("node-tests")).cable in line


def test_after_down_this_computer_is_as_before() -> None:
    before = computer()
    with_pods(up(HOME, NETWORK, operator=False, say=str))
    assert left_behind(HOME)
    assert down(HOME) > 10
    assert computer() == before
    assert not left_behind(HOME)


def test_after_a_crash_of_everything_down_takes_the_rest_away() -> None:
    before = computer()
    with_pods(up(HOME, NETWORK, operator=False, say=str))
    pids = {process.pid for part in PARTS for process in list_members(run_of(HOME, part))} | cgroups.pids(HOME.cgroup)
    assert len(pids) > 15
    for pid in pids:
        kill(pid)
    assert left_behind(HOME)
    down(HOME)
    assert computer() == before


def test_after_a_crash_up_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    up(HOME, NETWORK, operator=False, say=str)
    for process in list_members(run_of(HOME, "namespaces")):
        kill(process.pid)
    said: list[str] = []
    node = up(HOME, NETWORK, operator=False, say=said.append)
    assert "removing the remains of another node" in said
    assert all(node.is_healthy(name) for name in node.record.parts)


def test_node_without_its_folder_is_stopped() -> None:
    before = computer()
    up(HOME, NETWORK, operator=False, say=str)
    (HOME.folder / "record.json").unlink()
    down(HOME)
    assert computer() == before


def test_what_runs_and_is_well_is_left_as_it_is() -> None:
    first = up(HOME, NETWORK, operator=False, say=str).record
    assert up(HOME, NETWORK, operator=False, say=str).record == first
    with pytest.raises(RayhelmError, match=r"a node already runs at https://10\.211\.0\.1:6443"):
        up(HOME, Network.parse("10.212.0.0/16"), operator=False, say=str)


def test_up_installs_a_missing_operator_on_a_node() -> None:
    assert not up(HOME, NETWORK, operator=False, say=str).record.kuberay
    node = up(HOME, NETWORK, say=str)
    assert node.record.kuberay
    assert Cluster(node).kubectl("get", "rayservices", "--all-namespaces") == ""


def test_images_are_kept_where_that_is_asked_for_and_the_next_node_has_them() -> None:
    before = computer()
    with_pods(up(HOME, NETWORK, operator=False, say=str))
    down(HOME, keep_images=True)
    assert computer() == before
    assert HOME.kept.exists()
    said: list[str] = []
    with_pods(up(HOME, NETWORK, operator=False, say=said.append))
    assert "kept images" in said
    down(HOME)
    assert not HOME.kept.exists()


def test_up_refuses_a_network_in_use_and_changes_nothing() -> None:
    taken = Network(IPv4Network("10.213.0.0/16"))
    subprocess.run(["ip", "link", "add", "rayhelm-other", "type", "bridge"], check=True)
    try:
        subprocess.run(["ip", "address", "add", "10.213.9.9/32", "dev", "rayhelm-other"], check=True)
        with pytest.raises(MissingError, match=r"the interface rayhelm-other has 10\.213\.9\.9/32"):
            up(HOME, taken, operator=False, say=str)
    finally:
        subprocess.run(["ip", "link", "delete", "rayhelm-other"], check=True)
    assert not left_behind(HOME)


def test_start_that_fails_leaves_only_its_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    before = computer()
    monkeypatch.setattr("testbed.node.settings.containerd", lambda *_: "version = 'none'")
    with pytest.raises(RayhelmError, match=r"(?s)containerd: a process ended before it was ready.*Version"):
        up(HOME, NETWORK, operator=False, say=str)
    assert [path.name for path in HOME.folder.iterdir()] == ["logs"]
    down(HOME)
    assert computer() == before


def with_pods(node: Node) -> None:
    cluster = Cluster(node)
    with cluster.namespace() as name:
        cluster.serve(name, "server")


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
