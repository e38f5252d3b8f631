"""What breaks while a release comes up, and what it comes to."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.kit.cluster import Cluster
from cluster.kit.installs import NAME, PLACE, PLANNED, Install
from cluster.kit.place import Testbed
from cluster.kit.wait import eventually, stays
from testbed.nodes import lose_node, start_kubelet, stop_kubelet

NOT_OURS = "the API server was not started here"
FAILED, RUNNING = {"chat": "DEPLOY_FAILED"}, {"chat": "RUNNING"}


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    with cluster.machines(PLACE.machines()):
        yield


@pytest.fixture
def install(cluster: Cluster, namespace: str) -> Iterator[Install]:
    """It has come as far as Ray, whose dashboard answers only after the install `goes_on`."""
    found = Install(cluster, namespace)
    with cluster.place.ray.failing(namespace, NAME, dashboard=503):
        found.begins()
        eventually(found.all_run, "its pods running", shows=lambda: cluster.tell(namespace))
        yield found


@pytest.fixture(scope="module")
def done(cluster: Cluster) -> Iterator[Install]:
    """One that is through."""
    with cluster.namespace() as namespace:
        found = Install(cluster, namespace)
        found.begins()
        found.converges()
        yield found


# -- the control plane -----------------------------------------------------------------------------------------------


def test_restarted_operator_keeps_cluster_and_pods(install: Install, place: Testbed) -> None:
    before, pods = install.ray_cluster, install.uids()
    for grace in (5.0, 0.0):
        place.plane.restart("kuberay-operator", grace=grace)
    install.goes_on()
    install.converges()
    assert install.ray_cluster == before
    assert install.uids() == pods


def test_operator_creates_one_cluster_when_it_starts_after_the_install(
    cluster: Cluster, namespace: str, place: Testbed
) -> None:
    install = Install(cluster, namespace)
    with place.plane.without("kuberay-operator"):
        install.begins()
    install.converges()
    assert install.ray_cluster


def test_killed_api_server_keeps_installs_and_completes_new_ones(install: Install, place: Testbed) -> None:
    if not place.is_whole:
        pytest.skip(NOT_OURS)
    before, pods = install.ray_cluster, install.uids()
    with install.cluster.namespace() as elsewhere:
        begun = Install(install.cluster, elsewhere)
        begun.begins()
        place.plane.restart("kube-apiserver", grace=0)
        install.goes_on()
        for it in (install, begun):
            it.converges()
        assert begun.ray_cluster
    assert install.ray_cluster == before
    assert install.uids() == pods


# -- nodes -----------------------------------------------------------------------------------------------------------


def test_pods_of_nodes_that_are_lost_are_made_again_elsewhere(install: Install) -> None:
    before, pods = install.ray_cluster, install.uids()
    lost = {install.pods(role)[0]["spec"]["nodeName"] for role in ("head", "worker")}
    with lost_for_good(lost, install.cluster):
        install.goes_on()
        install.converges()
        assert not lost & {pod["spec"]["nodeName"] for pod in install.pods()}
    assert install.ray_cluster == before
    assert len(install.uids() & pods) == sum(PLANNED.values()) - len(lost)


@contextmanager
def lost_for_good(names: set[str], cluster: Cluster) -> Iterator[None]:
    """For as long as the block runs: other tests need the nodes."""
    ours = [item for item in PLACE.machines() if item["kind"] == "Node" and item["metadata"]["name"] in names]
    assert len(ours) == len(names), f"{names} are not all ours"
    for name in names:
        lose_node(name, cluster.place.kubeconfig)
    try:
        yield
    finally:
        cluster.apply(*ours)
        eventually(lambda: all(cluster.is_ready("Node", name) for name in names), f"nodes {names} being Ready again")


def test_pods_of_a_node_that_was_away_for_a_while_are_waited_for(install: Install, place: Testbed) -> None:
    before, pods = install.ray_cluster, install.uids()
    away = install.pods("worker")[0]["spec"]["nodeName"]
    stop_kubelet(away, place.kubeconfig)
    try:
        install.goes_on()
        eventually(lambda: install.applications("pending") == {"chat": "DEPLOYING"}, "Ray waiting for its worker")
        stays(lambda: install.is_ready() == "False", "it is not Ready with half of its workers", seconds=4)
    finally:
        start_kubelet(away, place.kubeconfig)
    install.converges()
    assert install.ray_cluster == before
    assert install.uids() == pods


# -- Ray -------------------------------------------------------------------------------------------------------------


def test_model_that_fails_to_deploy_is_reported_until_it_runs(install: Install, place: Testbed) -> None:
    with place.ray.failing(install.namespace, NAME, applications=FAILED):
        eventually(lambda: install.applications("pending") == FAILED, "the failure being reported")
        stays(lambda: install.is_ready() == "False", "it is not Ready", seconds=4)
    install.converges()


def test_later_model_failure_is_reported_while_the_service_is_ready(done: Install, place: Testbed) -> None:
    """Ready speaks of endpoints alone: who watches has to look at the applications too."""
    with place.ray.failing(done.namespace, NAME, applications=FAILED):
        eventually(lambda: done.applications("active") == FAILED, "the failure being reported")
        stays(lambda: done.is_ready() == "True", "it says that it is Ready", seconds=4)
    eventually(lambda: done.applications("active") == RUNNING, "being healed")


def test_failed_worker_is_replaced(done: Install) -> None:
    before, failing = done.ray_cluster, done.pods("worker")[0]["metadata"]
    where = f"--namespace={done.namespace}"
    done.cluster.kubectl("annotate", "pod", failing["name"], where, "testbed.rayhelm.dev/pod=fails")
    eventually(lambda: failing["uid"] not in done.uids(), "the failed worker being taken away")
    done.converges()
    assert done.ray_cluster == before
