"""The images of the live tests: what is in them, and what a second build makes again."""

import subprocess
from pathlib import Path

import pytest

from pods.kit.cluster import PATIENCE, Cluster
from rayhelm.processes import wait_until
from testbed.images import Layout, archive, of_program
from testbed.images.__main__ import build
from testbed.images.tar import Stream
from testbed.node.images import give
from testbed.node.namespace import enter
from testbed.node.settings import CONTAINERD
from testbed.node.shell import output
from testbed.tools import program


@pytest.fixture(scope="module")
def base() -> Layout:
    """Debian with Python, and nothing on top of it."""
    return build("base")


def test_base_image_has_the_commands_of_kuberays_probes(cluster: Cluster, namespace: str, base: Layout) -> None:
    image = give(cluster.node.home, cluster.pid, base, "base")
    cluster.start(namespace, "shell", image=image, command=["sleep", "1000"])
    for command in ("python -V", "wget --version", "grep --version", "bash --version"):
        cluster.kubectl("exec", "shell", f"--namespace={namespace}", "--", "bash", "-c", command)
    who = cluster.kubectl("exec", "shell", f"--namespace={namespace}", "--", "bash", "-c", "id -un; pwd; touch here")
    assert who.split() == ["ray", "/home/ray"]


def test_redis_runs_without_rights_and_requires_its_password(cluster: Cluster, namespace: str) -> None:
    image = give(cluster.node.home, cluster.pid, build("redis"), "redis")
    command = ["redis-server", "--save", "", "--appendonly", "no", "--requirepass", "secret"]
    cluster.start(namespace, "redis", image=image, command=command)

    def says(words: str) -> str:
        ask = f"redis-cli {words} 2>/dev/null"
        return cluster.kubectl("exec", "redis", f"--namespace={namespace}", "--", "bash", "-c", ask).strip()

    wait_until(lambda: says("-a secret ping") == "PONG" or None, what="Redis", timeout=PATIENCE)
    assert says("-a secret set key value") == "OK"
    assert says("get key") == "NOAUTH Authentication required."


def test_what_is_made_already_is_not_made_again(base: Layout) -> None:
    before = base.digest("base")
    assert build("base").digest("base") == before


def test_another_layer_on_top_leaves_those_below_as_they_are(base: Layout, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("one")
    base.make("tried", "one", base="base", layer=Stream(tmp_path, ["./note"]))
    assert base.blobs("tried")[2:-1] == base.blobs("base")[2:]
    (tmp_path / "note").write_text("two")
    assert not base.is_made_of("tried", "two")
    first = base.blobs("tried")[-1]
    base.make("tried", "two", base="base", layer=Stream(tmp_path, ["./note"]))
    assert base.blobs("tried")[-1] != first
    assert base.blobs("tried")[2:-1] == base.blobs("base")[2:]


def test_archive_omits_blobs_of_the_reader(base: Layout, tmp_path: Path) -> None:
    everything, little = tmp_path / "everything.tar", tmp_path / "little.tar"
    with everything.open("wb") as file:
        base.export("base", file)
    with little.open("wb") as file:
        base.export("base", file, without=frozenset(base.blobs("base")[2:]))
    assert everything.stat().st_size > 50 << 20
    assert little.stat().st_size < 1 << 20


def test_archive_contains_its_image_name(cluster: Cluster, base: Layout, tmp_path: Path) -> None:
    """As `kind load image-archive` hands it to containerd."""
    file = tmp_path / "base.tar"
    assert archive.main(["ray:base", str(file)]) == 0
    ctr = [str(program("ctr")), f"--address={CONTAINERD}", "--namespace=archives", "images"]
    imported = enter(cluster.pid, [*ctr, "import", "--all-platforms", "--digests", "-"])
    with file.open("rb") as tar:
        subprocess.run(imported, stdin=tar, capture_output=True, check=True)
    assert base.reference("base") in output(*enter(cluster.pid, [*ctr, "ls", "--quiet"])).split()


def test_program_is_an_image_of_its_own(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "agnhost")
    of_program(layout, "node", program("agnhost"), ["pause"])
    assert layout.reference("node") == "rayhelm.local/agnhost:node"
    assert len(layout.blobs("node")) == 3
