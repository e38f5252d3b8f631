"""ci/kind's scripts in a checkout of stand-ins that note how they were called. No Docker and no kind is needed."""

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
NOTES = 'echo "$(basename "$0") $*" >>"$NOTES"\n'
KIND = """
case "$1 $2" in
    "version ") echo "kind v$KIND_SAYS go1.26 linux/amd64" ;;
    "get clusters") cat "$CLUSTERS" ;;
    "create cluster") echo rayhelm-kind >"$CLUSTERS" ;;
    "delete cluster") : >"$CLUSTERS" ;;
esac
"""


class Checkout:
    """The scripts as they are, between stand-ins."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notes, self.clusters = root / "notes", root / "clusters"
        self.notes.touch()
        self.clusters.touch()
        shutil.copytree(ROOT / "ci" / "kind", root / "ci" / "kind")
        shutil.copy(ROOT / "ci" / "stage", root / "ci" / "stage")
        self.pinned = (ROOT / "ci" / "kind" / "version").read_text().strip()
        for name in (".venv/bin/python", ".venv/bin/pytest", ".tools/bin/kubectl", "ci/control-plane", "bin/docker"):
            self.stand_in(name)
        self.stand_in("bin/kind", KIND)

    def stand_in(self, name: str, program: str = "") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{NOTES}{program}")
        path.chmod(0o755)

    def run(self, script: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "NOTES": str(self.notes),
            "CLUSTERS": str(self.clusters),
            "KIND_SAYS": self.pinned,
            **more,
        }
        command = [self.root / "ci" / "kind" / script, *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def link(self, *names: str) -> None:
        """The host's programs that a script calls, and no others: a Docker may be among those."""
        for name in names:
            (self.root / "bin" / name).symlink_to(shutil.which(name) or "")

    def source(self, script: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of bash with the functions and variables of a script."""
        words = ["bash", "-c", f'source "$1"; {command}', "bash", self.root / "ci" / "kind" / script]
        return subprocess.run(words, capture_output=True, text=True, check=True)

    def docker_state(self, pid: int, start: str) -> Path:
        """What `ci/kind/docker up` leaves."""
        state = self.root / ".state" / "kind" / "docker"
        (state / "run").mkdir(parents=True)
        (state / "pid").write_text(f"{pid} {start}\n")
        return state

    def calls(self, program: str = "") -> list[str]:
        """What was called, in order."""
        return [line for line in self.notes.read_text().splitlines() if line.startswith(program)]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_cluster_is_created_adapted_and_joined_in_this_order(checkout: Checkout) -> None:
    ended = checkout.run("up")
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    kubeconfig = f"{checkout.root}/.state/kind/kind/kubeconfig"
    create = (
        f"kind create cluster --name rayhelm-kind --config ci/kind/cluster.yaml --kubeconfig {kubeconfig} --wait 5m"
    )
    steps = ["python -m testbed.tools", create, "kubectl", f"control-plane up --name kind --join {kubeconfig}"]
    calls = checkout.calls()
    places = [next(place for place, call in enumerate(calls) if call.startswith(step)) for step in steps]
    assert places == sorted(places)


def test_node_image_is_the_one_of_the_environment(checkout: Checkout) -> None:
    assert checkout.run("up", KIND_IMAGE="registry.example/kindest/node:v1.36.1").returncode == 0
    (create,) = checkout.calls("kind create")
    assert "--config ci/kind/cluster.yaml --image registry.example/kindest/node:v1.36.1 --kubeconfig" in create


def test_cluster_that_answers_is_reused(checkout: Checkout) -> None:
    assert checkout.run("up").returncode == 0
    assert checkout.run("up").returncode == 0
    assert len(checkout.calls("kind create")) == 1
    assert not checkout.calls("kind delete")


def test_cluster_that_does_not_answer_is_created_again(checkout: Checkout) -> None:
    checkout.clusters.write_text("other\nrayhelm-kind\n")
    checkout.stand_in(".tools/bin/kubectl", '[[ "$*" != *readyz* ]]')
    ended = checkout.run("up")
    assert ended.returncode == 0, ended.stderr
    assert "does not answer: making it again" in ended.stdout
    order = [call.split()[1] for call in checkout.calls("kind") if call.split()[1] in ("delete", "create")]
    assert order == ["delete", "create"]


def test_cluster_that_cannot_be_created_is_not_joined(checkout: Checkout) -> None:
    checkout.stand_in("bin/kind", KIND.replace('echo rayhelm-kind >"$CLUSTERS"', "exit 1"))
    assert checkout.run("up").returncode == 1
    assert not checkout.calls("control-plane")


@pytest.mark.parametrize("step", ["wait", "taint", "annotate", "delete daemonset kindnet", "patch"])
def test_cluster_that_cannot_be_adapted_is_not_joined(checkout: Checkout, step: str) -> None:
    checkout.stand_in(".tools/bin/kubectl", f'[[ "$*" != *" {step} "* ]]')
    assert checkout.run("up").returncode == 1
    assert not checkout.calls("control-plane")


def test_nothing_reads_or_writes_the_users_own_kubeconfig(checkout: Checkout) -> None:
    checkout.run("up")
    checkout.run("up")
    checkout.run("down")
    for call in checkout.calls():
        if call.startswith(("kubectl ", "kind create", "kind delete", "kind export")):
            assert f"--kubeconfig {checkout.root}/.state/kind/kind/kubeconfig" in call


def test_all_that_is_missing_is_reported_at_once(checkout: Checkout) -> None:
    for name in ("bin/kind", "bin/docker", ".tools/bin/kubectl"):
        (checkout.root / name).unlink()
    checkout.link("bash", "dirname", "timeout")
    for script in ("up", "test"):
        ended = checkout.run(script, PATH=str(checkout.root / "bin"))
        assert ended.returncode == 3
        assert ended.stderr.startswith("error: kind needs from this computer:\n")
        assert ended.stderr.count("\n  - ") == 3
        for wanted in ("make setup", "- Docker\n", f"kind {checkout.pinned}", "testbed.tools --group kind"):
            assert wanted in ended.stderr
    assert not checkout.calls()


def test_node_image_lists_all_programs_that_are_missing(checkout: Checkout) -> None:
    (checkout.root / "bin/docker").unlink()
    checkout.link("bash", "dirname", "cksum", "cut", "gcc")
    ended = checkout.run("node-image", PATH=str(checkout.root / "bin"))
    assert (ended.returncode, ended.stderr) == (3, "error: not installed: docker debootstrap go\n")


def test_docker_that_does_not_answer_is_reported(checkout: Checkout) -> None:
    checkout.stand_in("bin/docker", "exit 1")
    ended = checkout.run("up")
    assert ended.returncode == 3
    assert "  - a Docker daemon that answers `docker info`\n" in ended.stderr
    assert ended.stderr.count("\n  - ") == 1


def test_another_kind_is_taken_and_reported(checkout: Checkout) -> None:
    ended = checkout.run("up", KIND_SAYS="0.1.0")
    assert ended.returncode == 0
    assert f"note: this is kind v0.1.0 go1.26 linux/amd64; {checkout.pinned} is the release" in ended.stderr


def test_tests_run_on_the_node_with_pytest_options(checkout: Checkout) -> None:
    checkout.stand_in(".venv/bin/pytest", 'echo "on $KUBECONFIG"; exit 7')
    ended = checkout.run("test", "-k", "single gpu")
    assert ended.returncode == 7
    assert checkout.calls("pytest") == ["pytest tests/cluster -k single gpu"]
    assert f"on {checkout.root}/.state/control-plane/kind/kubeconfig" in ended.stdout


def test_down_leaves_what_was_joined_and_then_ends_the_cluster(checkout: Checkout) -> None:
    checkout.run("up")
    checkout.notes.write_text("")
    ended = checkout.run("down")
    assert ended.returncode == 0, ended.stderr
    calls = [call for call in checkout.calls() if call.startswith(("control-plane", "kind delete"))]
    assert [call.split()[:3] for call in calls] == [["control-plane", "down", "--name"], ["kind", "delete", "cluster"]]
    assert not (checkout.root / ".state" / "kind" / "kind").exists()


def test_down_where_nothing_is_needs_nothing(checkout: Checkout) -> None:
    checkout.stand_in("bin/docker", "exit 1")
    ended = checkout.run("down")
    assert (ended.returncode, ended.stdout) == (0, "no cluster of kind runs here\n")
    assert not checkout.calls()


def test_two_of_them_have_names_of_their_own(checkout: Checkout) -> None:
    checkout.run("up", KIND_NAME="second")
    assert "--name rayhelm-second" in checkout.calls("kind create")[0]
    assert checkout.calls("control-plane")[0].startswith("control-plane up --name second --join")
    assert (checkout.root / ".state" / "kind" / "second").is_dir()


def test_docker_without_a_command_says_how_to_use_it(checkout: Checkout) -> None:
    ended = checkout.run("docker")
    assert (ended.returncode, ended.stderr) == (2, "usage: ci/kind/docker up|run COMMAND...|down\n")


def test_docker_that_was_not_started_runs_nothing(checkout: Checkout) -> None:
    ended = checkout.run("docker", "run", "docker", "info")
    assert ended.returncode == 1
    assert ended.stderr == "error: no Docker daemon runs: ci/kind/docker up\n"


def test_docker_down_ends_the_process_that_up_started(checkout: Checkout) -> None:
    with sleeping() as process:
        state = checkout.docker_state(process.pid, start_time(process.pid))
        assert checkout.run("docker", "down").returncode == 0
        assert process.wait() == -signal.SIGKILL
    assert not state.exists()


@pytest.mark.parametrize("start", ["1", ""], ids=["another", "unknown"])
def test_docker_leaves_a_process_with_another_start_time_alone(checkout: Checkout, start: str) -> None:
    """After a reboot a process of others can have the pid."""
    with sleeping() as process:
        state = checkout.docker_state(process.pid, start)
        ended = checkout.run("docker", "run", "true")
        assert (ended.returncode, ended.stderr) == (1, "error: no Docker daemon runs: ci/kind/docker up\n")
        assert checkout.run("docker", "down").returncode == 0
        assert process.poll() is None
    assert not state.exists()


def test_docker_down_cleans_up_when_a_setting_cannot_be_written(checkout: Checkout) -> None:
    state = checkout.docker_state(1, "")
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (state / f"settings-{boot}").write_text("no/setting:1\n")
    (state / "settings-of-an-earlier-boot").write_text("no/other:1\n")
    ended = checkout.run("docker", "down")
    assert (ended.returncode, ended.stderr) == (0, "note: /proc/sys/no/setting cannot be written; it was 1\n")
    assert not state.exists()


def test_docker_down_removes_cgroups_of_its_own_daemon_only(checkout: Checkout) -> None:
    groups = checkout.root / "cgroups"
    script = checkout.root / "ci" / "kind" / "docker"
    script.write_text(script.read_text().replace("/sys/fs/cgroup", str(groups)))
    name = checkout.source("docker", 'echo "$cgroup"').stdout.strip()
    for folder in (f"cpu/{name}/container/kubelet", f"{name}/container", "cpu/docker/container", "cpu/rayhelm-other"):
        (groups / folder).mkdir(parents=True)
    assert checkout.run("docker", "down").returncode == 0
    left = {str(path.relative_to(groups)) for path in groups.rglob("*")}
    assert left == {"cpu", "cpu/docker", "cpu/docker/container", "cpu/rayhelm-other"}


def test_runc_asks_for_no_capability_that_is_missing(checkout: Checkout, tmp_path: Path) -> None:
    """Of a container and of a process in one; this computer gives a bounding set."""
    all_of_them = ["CAP_CHOWN", "CAP_NOT_YET_KNOWN"]
    config = {"process": {"capabilities": {"bounding": all_of_them, "effective": all_of_them}}, "root": {"path": "/"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    process = tmp_path / "process.json"
    process.write_text(json.dumps({"capabilities": {"bounding": all_of_them}}))
    checkout.stand_in("bin/runc")
    checkout.run("runc", "create", "--bundle", str(tmp_path), "name")
    checkout.run("runc", "exec", "--process", str(process), "name")
    kept = [name for name in all_of_them if has_chown() and name == "CAP_CHOWN"]
    changed = {"process": {"capabilities": {"bounding": kept, "effective": kept}}, "root": {"path": "/"}}
    assert json.loads((tmp_path / "config.json").read_text()) == changed
    assert json.loads(process.read_text()) == {"capabilities": {"bounding": kept}}
    assert checkout.calls("runc") == [f"runc create --bundle {tmp_path} name", f"runc exec --process {process} name"]


@contextmanager
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def start_time(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().split()[21]


def has_chown() -> bool:
    status = Path("/proc/self/status").read_text()
    return bool(int(status.split("CapBnd:")[1].split()[0], 16) & 1)
