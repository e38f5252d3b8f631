"""`rayhelm rehearse` on a real API server without Ray: what it refuses, what it writes down, and what it takes away.

No model answers on simulated nodes: whole rehearsals are among the live tests.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.kit.bare import bare
from cluster.kit.cluster import Cluster, Object
from cluster.kit.wait import eventually
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import render_fleet
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.run.rehearsal import record
from rayhelm.run.rehearsal.checks import list_namespaces, render_objects
from rayhelm.run.rehearsal.cluster_session import ClusterSession
from rayhelm.run.rehearsal.external import remove_external
from rayhelm.run.rehearsal.load import NAMESPACE
from rayhelm.run.rehearsal.without_gpus import build_stand_ins
from rayhelm.run.standin.cluster import StandInCluster
from testbed.nodes import cpu_nodes, uniform
from testbed.tools import program

VALUES = charts_dir().parent / "values"
FLEET = VALUES / "two-workstations" / "fleet.yaml"
OPERATOR = "kuberay-operator"
COMMAND = """
# Tests that run in the background may ignore ctrl-C.
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from rayhelm.cli import main
main()
"""


class Rehearsal:
    """The command, against this cluster."""

    def __init__(self, kubeconfig: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "KUBECTL": str(program("kubectl"))}

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", COMMAND, "rehearse", *words]
        return subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __call__(self, *words: str) -> tuple[int, str]:
        """Exit code and all that it says; never a traceback."""
        process = self.start(*words)
        out, err = process.communicate()
        assert "Traceback" not in err
        return process.returncode, out + err


@pytest.fixture
def rehearse(cluster: Cluster) -> Iterator[Rehearsal]:
    command = Rehearsal(cluster.place.kubeconfig)
    yield command
    command("--clean")


@pytest.fixture(scope="module")
def nodes(cluster: Cluster) -> Iterator[None]:
    """Room, and the operator as a cluster shows it: here it is a process beside the cluster."""
    container = {"name": "it", "image": "registry.example/none"}
    labels = {"app": OPERATOR}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    with cluster.machines(cpu_nodes(2)), cluster.namespace({}) as name:
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        meta = {"name": OPERATOR, "namespace": name}
        cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
        available = lambda: cluster.one("Deployment", OPERATOR, name).get("status", {}).get("availableReplicas")  # noqa: E731
        eventually(available, "an operator that is available")
        # RayServices of the tests before are deleted in the background, and a rehearsal would report them.
        left = lambda: cluster.kubectl("get", "rayservices", "--all-namespaces", "--output=name")  # noqa: E731
        eventually(lambda: not left().strip(), "the end of the RayServices of other tests", shows=left)
        yield


def namespaces(cluster: Cluster) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.all("Namespace")}


def wide(cluster: Cluster) -> set[str]:
    return set(cluster.kubectl("get", "priorityclasses,validatingadmissionpolicies", "--output=name").split())


def test_cluster_without_kuberay_is_refused_and_unchanged() -> None:
    with bare("rehearse") as other:
        before = other.names("namespaces")
        code, said = Rehearsal(other.kubeconfig)(str(FLEET))
        assert code == 3
        assert "the cluster has no KubeRay" in said
        assert "helm install kuberay-operator" in said
        assert other.names("namespaces") == before


def test_rehearse_refuses_a_cluster_without_an_operator(rehearse: Rehearsal, cluster: Cluster) -> None:
    code, said = rehearse(str(FLEET))
    assert code == 3
    assert "operator does not run on the cluster" in said
    assert NAMESPACE not in namespaces(cluster)


@pytest.mark.usefixtures("nodes")
def test_rehearse_reports_all_refusals_together(rehearse: Rehearsal, cluster: Cluster) -> None:
    service = ray_service("foreign")
    with cluster.machines(uniform(nodes=1)), cluster.namespace() as name, cluster.namespace({}, name="gateway"):
        cluster.apply(service, namespace=name)
        code, said = rehearse(str(FLEET))
        assert code == 1
        for words in (
            "the cluster has GPUs: nvidia.com/gpu",
            f"the cluster has other RayServices: {name}/foreign",
            "the namespace gateway already exists on the cluster",
        ):
            assert words in said
        code, said = rehearse(str(FLEET), "--with-gpus", "--allow-existing")
        assert code == 1
        assert said.count("already exists on the cluster") == 1
        assert "GPUs" not in said
    eventually(lambda: "gateway" not in namespaces(cluster), "the end of the namespace")
    assert NAMESPACE not in namespaces(cluster)


@pytest.mark.usefixtures("nodes")
def test_one_that_is_killed_is_found_and_cleaned(rehearse: Rehearsal, cluster: Cluster) -> None:
    first = begun(rehearse, cluster)
    code, said = rehearse(str(FLEET))
    assert (code, "is running on this cluster" in said) == (1, True)
    code, said = rehearse("--clean")
    assert (code, "is running on this cluster" in said) == (1, True)
    first.kill()
    first.communicate()
    code, said = rehearse(str(FLEET))
    assert code == 1
    assert "was interrupted" in said
    assert "rayhelm rehearse --clean" in said
    code, said = rehearse("--clean")
    assert (code, NAMESPACE in namespaces(cluster)) == (0, False)
    code, said = rehearse("--clean")
    assert (code, "there is no rehearsal on this cluster" in said) == (0, True)


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_rehearsal_removes_its_namespace(
    rehearse: Rehearsal, cluster: Cluster, how: signal.Signals
) -> None:
    process = begun(rehearse, cluster)
    process.send_signal(how)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert NAMESPACE not in namespaces(cluster)


@pytest.mark.usefixtures("nodes")
def test_clean_removes_what_the_record_lists_and_nothing_else(rehearse: Rehearsal, cluster: Cluster) -> None:
    kubectl = Kubectl(program("kubectl"), cluster.place.kubeconfig)
    place = StandInCluster(
        kuberay=cluster.place.kuberay, image=RayImage(repository="here.example/ray", tag="cpu", includes_rayhelm=True)
    )
    releases = remove_external(build_stand_ins(render_fleet(FLEET), place, cluster="main")).releases
    names, classes = namespaces(cluster), wide(cluster)
    session = ClusterSession(kubectl, cluster.place.kubeconfig)
    mine = record.create_record("two-workstations", releases, list_namespaces(releases, render_objects(releases)))
    record.write(kubectl, mine.model_copy(update={"created": 1.0}))
    with cluster.namespace() as of_others:
        for release in releases:
            session.install(release)
        assert set(mine.namespaces) <= namespaces(cluster)
        assert len(wide(cluster)) > len(classes)
        code, said = rehearse("--clean")
        assert (code, f"removed {len(releases)} releases" in said) == (0, True)
        # Those of tests before this one may have gone meanwhile.
        assert namespaces(cluster) - names == {of_others}
        assert wide(cluster) == classes


def begun(rehearse: Rehearsal, cluster: Cluster) -> subprocess.Popen[str]:
    """One that has written its record, and waits for a pod that no simulated node completes."""
    # Services of tests before this one may still be terminating.
    process = rehearse.start(str(FLEET), "--allow-existing")
    ended = lambda: process.poll() is not None  # noqa: E731
    eventually(lambda: ended() or cluster.find("ConfigMap", "rehearsal", NAMESPACE), "the record")
    assert not ended(), process.communicate()
    return process


def ray_service(name: str) -> Object:
    """The least that the API server takes."""
    container = {"name": "ray", "image": "registry.example/none"}
    head = {"rayStartParams": {}, "template": {"spec": {"containers": [container]}}}
    spec = {"serveConfigV2": "applications: []", "rayClusterConfig": {"rayVersion": "2.60.0", "headGroupSpec": head}}
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": name}, "spec": spec}
