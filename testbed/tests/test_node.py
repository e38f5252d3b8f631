"""A node, as far as it can be tested without root: its addresses, its files, its cgroups, and what it refuses."""

import errno
import json
import re
import tomllib
from fnmatch import fnmatchcase
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import yaml

from pods.kit import ground
from rayhelm.errors import MissingError, UsageError
from testbed.node import __main__ as command_line
from testbed.node import cgroups, components, host, settings
from testbed.node.__main__ import _confirm
from testbed.node.home import NodeHome
from testbed.node.host import PACKAGES, Facts, lacks, overlaps
from testbed.node.init import SETTINGS
from testbed.node.network import DEFAULT, Network
from testbed.node.up import MANIFESTS, PLUGINS, touches
from testbed.tools.catalog import tools
from testbed.tools.checkout import HERE

NETWORK = Network.parse(DEFAULT)
HOME = NodeHome(Path("/srv/rayhelm/.state/node"))


# -- addresses ---------------------------------------------------------------------------------------------------------


def test_cable_pods_and_services_share_nothing_and_lie_in_the_network() -> None:
    parts = [NETWORK.cable, NETWORK.pods, NETWORK.services]
    assert all(part.subnet_of(NETWORK.all) for part in parts)
    assert not any(one.overlaps(other) for one in parts for other in parts if one is not other)
    assert NETWORK.node in NETWORK.cable
    assert NETWORK.host in NETWORK.cable
    assert {NETWORK.api, NETWORK.dns} <= set(NETWORK.services)


@pytest.mark.parametrize("text", ["10.200.0.0/24", "8.8.0.0/16", "10.200.1.0/16", "home", "fd00::/16"])
def test_network_that_is_not_a_private_16_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--network .*10\.200\.0\.0/16"):
        Network.parse(text)


def test_network_of_node_is_derived_from_its_api_server_url() -> None:
    assert Network.of(f"https://{NETWORK.node}:6443") == NETWORK


def test_who_has_an_address_of_the_network_is_reported() -> None:
    addresses = [{"ifname": "tun0", "addr_info": [{"local": "10.200.7.1"}]}, {"ifname": "lo", "addr_info": []}]
    routes = [{"dst": "10.0.0.0/8", "dev": "wg0"}, {"dst": "default", "dev": "eth0"}, {"dst": "192.168.1.0/24"}]
    found = NETWORK.clashes(overlaps(routes, addresses, ours="rayhelm-0"))
    assert found == ["a route to wg0 has 10.0.0.0/8", "the interface tun0 has 10.200.7.1/32"]


def test_what_is_left_of_the_same_node_is_nothing_elses() -> None:
    addresses = [{"ifname": "rayhelm-0", "addr_info": [{"local": "10.200.0.2"}]}]
    assert not overlaps([{"dst": "10.200.1.0/24", "dev": "rayhelm-0"}], addresses, ours="rayhelm-0")


# -- files and command lines -------------------------------------------------------------------------------------------


def test_pause_image_needs_no_registry() -> None:
    config = tomllib.loads(settings.containerd(NETWORK, Path("/plugins"), Path("/networks")))
    assert config["plugins"]["io.containerd.cri.v1.images"]["pinned_images"] == {"sandbox": settings.SANDBOX}
    assert settings.SANDBOX.startswith("rayhelm.local/")


def test_containerd_finds_the_plugins_and_the_network_that_are_written_for_it() -> None:
    config = tomllib.loads(settings.containerd(NETWORK, Path("/plugins"), Path("/networks")))
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["cni"] == {"bin_dirs": ["/plugins"], "conf_dir": "/networks"}
    named = {plugin["type"] for plugin in settings.cni(NETWORK)["plugins"]}
    assert {*named, "host-local", "loopback"} == set(PLUGINS)


def test_no_packet_of_a_pod_is_given_the_hosts_address() -> None:
    bridge = settings.cni(NETWORK)["plugins"][0]
    assert bridge["ipMasq"] is False
    assert [[IPv4Network(part["subnet"]) for part in parts] for parts in bridge["ipam"]["ranges"]] == [[NETWORK.pods]]


def test_kubelet_asks_no_dns_outside_and_requires_a_client_certificate() -> None:
    config = settings.kubelet(NETWORK, Path("/certificates"), "group", Path("/empty"))
    assert config["resolvConf"] == "/empty"
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["cgroupRoot"] == "/group"
    assert config["clusterDNS"] == [str(NETWORK.dns)]


def test_kube_proxy_leaves_limits_of_the_kernel_alone() -> None:
    assert settings.kube_proxy(NETWORK, Path("/kubeconfig"))["conntrack"]["maxPerCore"] == 0


def test_kernel_settings_of_the_computer_are_files_of_the_node() -> None:
    assert SETTINGS
    assert not [name for name in SETTINGS if name.startswith("net/")]


@pytest.mark.parametrize(
    ("part", "flag"),
    [
        ("kube-apiserver", "--advertise-address=10.200.0.1"),
        ("kube-apiserver", "--service-cluster-ip-range=10.200.16.0/20"),
        ("kube-apiserver", "--enable-admission-plugins=NodeRestriction"),
        ("kube-controller-manager", "--cluster-cidr=10.200.1.0/24"),
        ("kube-scheduler", "--bind-address=10.200.0.1"),
    ],
)
def test_what_a_control_plane_does_otherwise_for_a_node_is_said_last(part: str, flag: str) -> None:
    programs = {name: Path("/bin", name) for name in ("etcd", "kube-apiserver", *MANAGERS)}
    command = components.control_plane(programs, HOME, NETWORK)[part]
    assert [word for word in command if word.partition("=")[0] == flag.partition("=")[0]][-1] == flag


MANAGERS = ("kube-controller-manager", "kube-scheduler")


def test_names_of_the_world_do_not_exist_and_names_of_the_cluster_are_asked_first() -> None:
    ours, rest = settings.corefile().split(".:53 {")
    assert "kubernetes cluster.local" in ours
    assert "template" not in ours
    assert "rcode NXDOMAIN" in rest
    assert "forward" not in settings.corefile()


def test_coredns_passes_pod_security_as_far_as_its_port_allows() -> None:
    documents = list(yaml.safe_load_all((MANIFESTS / "coredns.yaml").read_text().replace("$", "x")))
    (pod,) = [item["spec"]["template"]["spec"] for item in documents if item["kind"] == "Deployment"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["containers"][0]["imagePullPolicy"] == "Never"


# -- what it says and refuses ------------------------------------------------------------------------------------------


def test_everything_outside_of_its_namespaces_is_named_before_it_is_touched() -> None:
    text = touches(HOME, NETWORK)
    for thing in (HOME.cable, HOME.cgroup, str(HOME.folder), "10.200.1.0/24", "10.200.16.0/20", "resolv.conf"):
        assert thing in text


def test_two_checkouts_share_no_name_and_an_interfaces_name_is_short_enough() -> None:
    other = NodeHome(Path("/srv/another/.state/node"))
    assert HOME.cable != other.cable
    assert HOME.cgroup != other.cgroup
    assert len(HOME.cable) <= 15


def test_without_root_one_is_shown_the_way_to_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(MissingError, match=r"(?s)needs root.*ci/kind/up"):
        host.check(HOME, NETWORK)


def test_elsewhere_than_on_linux_one_is_shown_the_way_to_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(MissingError, match=r"(?s)needs Linux: this is Darwin.*ci/kind/up"):
        host.check(HOME, NETWORK)


def test_nothing_is_reported_of_a_computer_that_has_everything() -> None:
    assert not lacks(Facts(), NETWORK)


@pytest.mark.parametrize(
    ("facts", "what", "how"),
    [
        (Facts(absent=("nft", "ipset")), "nft, ipset", "apt-get install nftables ipset"),
        (Facts(compiler=False), "libseccomp", "libseccomp-dev"),
        (Facts(controllers=("memory",)), "cgroup controllers memory", "cgroup_enable="),
        (Facts(features=(("veth", "not known", "modprobe veth"),)), "kernel feature veth: not known", "modprobe veth"),
        (Facts(clashes=("wg0 has 10.0.0.0/8",)), "10.200.0.0/16: wg0 has 10.0.0.0/8", "--network 10.210.0.0/16"),
        (Facts(hidden=True), "a checkout outside of", "clone the repository"),
        (
            Facts(closed="/sys is read-only"),
            "permission to create cgroups: /sys is read-only",
            "outside of a container",
        ),
        (Facts(memory=1 << 30), "3 GiB of free memory: 1.0 are free", "stop other programs"),
        (Facts(disk=1 << 30), "3 GiB of disk: 1.0 are free", "free disk space"),
    ],
)
def test_what_is_missing_is_reported_with_how_to_get_it(facts: Facts, what: str, how: str) -> None:
    ((said, fix),) = lacks(facts, NETWORK)
    assert what in said
    assert how in fix


def test_all_that_is_missing_is_reported_at_once() -> None:
    assert len(lacks(Facts(absent=tuple(PACKAGES), controllers=("cpu",), memory=0, disk=0), NETWORK)) == 4


def test_upgrade_of_a_ray_cluster_needs_the_gpus_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Facts(absent=("debootstrap",), memory=13 << 30, disk=19 << 30, unmade=6)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(host, "look", lambda *_, images: facts if images else Facts())
    host.check(HOME, NETWORK)
    with pytest.raises(MissingError) as refused:
        host.check(HOME, NETWORK, clusters=2)
    for words in ("14 GiB of free memory: 13.0", "20 GiB of disk: 19.0", "apt-get install debootstrap"):
        assert words in str(refused.value)


def test_what_is_not_built_yet_needs_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "missing", lambda **_: ["kubelet", "kube-proxy", "runc"])
    monkeypatch.setattr(host, "LAYOUTS", Path("/nowhere"))
    disks = [tools(HERE)[name].module.recipe.disk for name in ("kubelet", "runc")]
    assert host.look(HOME, NETWORK, images=True).unmade == pytest.approx(
        6 + sum(disk.modules + disk.cache + disk.programs for disk in disks) / 1024
    )


# -- what .ci/run may skip ---------------------------------------------------------------------------------------------

NO_NODE = [
    *[Facts(absent=("nft",)), Facts(compiler=False), Facts(controllers=("memory",)), Facts(closed="read-only")],
    *[Facts(features=(("namespaces", "not permitted", "elsewhere"),)), Facts(hidden=True)],
    *[Facts(memory=1 << 30), Facts(disk=1 << 30)],
]


def is_allowed(reason: str) -> bool:
    lines = [line for line in (HERE.root / "ci" / "allowed-skips").read_text().splitlines() if "tests/pods" in line]
    return any(fnmatchcase(reason, line.partition("|")[2].strip()) for line in lines)


@pytest.fixture
def own_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any node that live tests use meanwhile."""
    monkeypatch.setattr(ground, "GIVEN", "")
    monkeypatch.setattr("os.geteuid", lambda: 0)


@pytest.mark.usefixtures("own_node")
@pytest.mark.parametrize("facts", NO_NODE)
def test_unsuitable_computer_is_an_allowed_reason_to_skip(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "look", lambda *_, **__: facts)
    reason = ground.why_not.__wrapped__(2)
    assert "\n" not in reason
    assert is_allowed(reason), reason


def test_short_live_tests_need_the_room_that_their_programs_are_built_for() -> None:
    """`make test-live-short` builds nothing on a computer without room for Ray: a test that needs less would fail."""
    small = [HERE.root / "tests" / "pods" / f"{name}.py" for name in ground.SMALL]
    assert [file.name for file in small if "mark.short" in file.read_text()] == []


@pytest.mark.usefixtures("own_node")
def test_another_user_than_root_is_a_reason_to_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert is_allowed(ground.why_not.__wrapped__(2))


@pytest.mark.usefixtures("own_node")
@pytest.mark.parametrize("facts", [Facts(), Facts(clashes=("wg0 has 10.0.0.0/8",))])
def test_what_nothing_built_and_a_network_that_is_taken_are_none(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "look", lambda *_, **__: facts)
    monkeypatch.setattr(ground, "missing", lambda **_: ["kubelet"])
    reason = ground.why_not.__wrapped__(2)
    assert reason
    assert not is_allowed(reason), reason


def test_nothing_who_can_agree_means_that_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(UsageError, match="--yes"):
        _confirm("this and that", yes=False)
    _confirm("this and that", yes=True)


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeHome:
    """Where the node would be."""
    place = NodeHome(tmp_path / "node")
    monkeypatch.setattr(command_line, "home", lambda: place)
    return place


def called(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    monkeypatch.setattr("sys.argv", ["ci/node", *words])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out + captured.err


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["status"], 3, "no node runs here\n    make node"),
        (["load", "ray:cpu"], 3, "no node runs here\n    make node"),
        (["down"], 0, "no node runs here"),
        (["up", "--network", "10.0.0.0/8"], 2, "is not a private /16 network"),
        (["up", "--force"], 2, "No such option"),
    ],
)
def test_each_refusal_is_one_message_with_its_exit_code(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, output = called(capsys, monkeypatch, *words)
    assert said in output
    assert ended == code


def test_what_a_crash_left_is_reported_by_status_with_what_takes_it_away(
    place: NodeHome, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place.folder.mkdir()
    code, output = called(capsys, monkeypatch, "status")
    assert code == 1
    assert f"a stopped node left {place.folder}: `ci/node down` removes it" in output
    assert called(capsys, monkeypatch, "down")[0] == 0
    assert not place.folder.exists()


def test_kept_images_go_with_the_next_down_that_does_not_keep_them(
    place: NodeHome, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place.kept.mkdir()
    assert called(capsys, monkeypatch, "down", "--keep-images")[1] == "no node runs here\n"
    assert "were removed too" in called(capsys, monkeypatch, "down")[1]
    assert not place.kept.exists()


# -- cgroups -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """Version 1: a tree for each controller; one carries two, under a link."""
    for name in ("cpu,cpuacct", "cpuset", "memory", "pids", "systemd"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").touch()
    (tmp_path / "cpu").symlink_to("cpu,cpuacct")
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1\n")
    return tmp_path


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Version 2: one tree."""
    for name, text in (("controllers", "cpu cpuset memory pids io"), ("subtree_control", "cpu memory"), ("procs", "")):
        (tmp_path / f"cgroup.{name}").write_text(text)
    return tmp_path


def test_each_hierarchy_of_version_1_is_one_tree_and_a_link_is_none(first: Path) -> None:
    assert [path.name for path in cgroups.trees(first)] == ["cpu,cpuacct", "cpuset", "memory", "pids", "systemd"]
    assert not cgroups.lacking(first)


def test_new_cgroup_of_version_1_is_in_each_tree(first: Path) -> None:
    assert cgroups.make("ours", first) == []
    assert all((tree / "ours").is_dir() for tree in cgroups.trees(first))


def test_controller_that_is_not_mounted_is_missing(first: Path) -> None:
    (first / "memory" / "cgroup.procs").unlink()
    assert cgroups.lacking(first) == ["memory"]


def test_version_2_is_one_tree_and_what_is_switched_on_for_a_node_is_reported(second: Path) -> None:
    assert cgroups.trees(second) == [second]
    assert not cgroups.lacking(second)
    assert cgroups.make("ours", second) == ["cpuset", "pids"]
    assert (second / "cgroup.subtree_control").read_text() == "+cpuset +pids"
    cgroups.remove("ours", ["cpuset", "pids"], second)
    assert (second / "cgroup.subtree_control").read_text() == "-pids", "one after the other"
    assert not (second / "ours").exists()


def test_controller_that_another_process_uses_stays_on(second: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def write(_: Path, text: str) -> None:
        written.append(text)
        if text == "-cpuset":
            raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "write_text", write)
    cgroups.remove("ours", ["cpuset", "pids"], second)
    assert written == ["-cpuset", "-pids"]


def test_cgroups_below_go_before_the_one_above(second: Path) -> None:
    cgroups.make("ours", second)
    (second / "ours" / "kubepods" / "pod-1").mkdir(parents=True)
    cgroups.remove("ours", root=second)
    assert not (second / "ours").exists()


def test_removing_what_is_not_there_is_no_mistake(first: Path) -> None:
    cgroups.remove("ours", root=first)
    assert cgroups.pids("ours", first) == set()


def test_cgroups_of_version_2_are_closed_where_a_containers_root_holds_processes(second: Path) -> None:
    (second / "cgroup.procs").write_text("1\n")
    assert cgroups.closed(second) == "", "of the kernel's own root"
    (second / "cgroup.type").write_text("domain\n")
    assert cgroups.closed(second) == f"{second} is the cgroup of a container and has its processes"
    (second / "cgroup.subtree_control").write_text(" ".join(cgroups.NEEDED))
    assert cgroups.closed(second) == ""


def test_enabled_controllers_are_read_back(tmp_path: Path) -> None:
    from testbed.node.down import _read_enabled_controllers

    home = NodeHome(tmp_path)
    assert _read_enabled_controllers(home) == []
    (tmp_path / "switched.json").write_text(json.dumps(["pids"]))
    assert _read_enabled_controllers(home) == ["pids"]


def test_what_the_short_live_tests_need_is_built_where_their_node_can_be() -> None:
    makefile = (HERE.root / "Makefile").read_text()
    (line,) = re.findall(r"^fits-live-tests := (ci/node check .*?) >/dev/null", makefile, re.MULTILINE)
    assert line.split()[2:] == ["--network", str(ground.NETWORK.all), "--clusters", str(ground.UPGRADE)]
