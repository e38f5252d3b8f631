"""ci/kind's scripts in a checkout of stand-ins that note how they were called. No Docker and no kind is needed."""

import shutil
import subprocess
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
    # Of the host's programs only those that the script calls: a Docker may be among the others.
    for name in ("bash", "dirname", "timeout"):
        (checkout.root / "bin" / name).symlink_to(shutil.which(name) or "")
    for script in ("up", "test"):
        ended = checkout.run(script, PATH=str(checkout.root / "bin"))
        assert ended.returncode == 3
        assert ended.stderr.startswith("error: kind needs from this computer:\n")
        assert ended.stderr.count("\n  - ") == 3
        for wanted in ("make setup", "- Docker\n", f"go install sigs.k8s.io/kind@v{checkout.pinned}"):
            assert wanted in ended.stderr
    assert not checkout.calls()


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
