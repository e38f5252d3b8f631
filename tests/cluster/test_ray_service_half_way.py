"""What Helm 3 and Helm 4 leave of a RayService: half-way through an install or an upgrade, and at its end."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from charts.kit import example, over
from cluster.kit.charts import ANOTHER_MODEL, NOWHERE_TO_RUN, PLACE, RAY_SERVICE
from cluster.kit.cluster import Cluster
from cluster.kit.helm import Helm, Refused
from cluster.kit.releases import Release, Values
from cluster.kit.stillness import touches
from cluster.kit.wait import eventually
from rayhelm.live.cluster.kubectl import KubectlError


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    with cluster.machines(PLACE.machines()):
        yield


@pytest.fixture
def fresh(cluster: Cluster, namespace: str, each_helm: Helm) -> Release:
    """Not installed yet."""
    return Release(RAY_SERVICE, each_helm, cluster, namespace)


# -- an upgrade ------------------------------------------------------------------------------------------------------


def test_who_goes_back_after_an_upgrade_that_could_not_fetch_leaves_nothing_behind(fresh: Release) -> None:
    fresh.upgrade()
    before = fresh.cluster.one("RayService", fresh.name, fresh.namespace)["spec"]
    with pytest.raises(Refused, match="pre-upgrade"):
        fresh.upgrade(over(fresh.values, over(ANOTHER_MODEL, NOWHERE_TO_RUN)), "--timeout=5s")
    # Helm 3 compares with its failed revision, which does not have the Job that is there.
    refused = pytest.raises(Refused, match="no Job with the name") if fresh.helm.major == "3" else nullcontext()
    with refused:
        fresh.helm.rollback(fresh.name, fresh.namespace, 1)
    fresh.upgrade()
    assert fresh.cluster.one("RayService", fresh.name, fresh.namespace)["spec"] == before
    fresh.helm.uninstall(fresh.name, fresh.namespace)
    eventually(
        lambda: set(touches(fresh.cluster, fresh.namespace)) == set(RAY_SERVICE.outlives),
        "the hook going with the release",
        shows=lambda: touches(fresh.cluster, fresh.namespace),
    )


def test_weights_can_be_turned_on_in_a_release_that_lives(fresh: Release) -> None:
    """No hook waits for the claim that the upgrade itself brings."""
    without = over(example("stand-in"), {"kuberay": {"version": fresh.cluster.place.kuberay}})
    fresh.upgrade(without)
    eventually(lambda: fresh.cluster.all("RayCluster", fresh.namespace), "its Ray cluster")
    fresh.upgrade(over(without, {"weights": {"enabled": True, "claim": {"storageClass": PLACE.name}}}))
    eventually(lambda: bound(fresh) == ["chat-weights"], "the claim being bound")
    fresh.becomes_ready()


def bound(release: Release) -> list[str]:
    claims = release.cluster.all("PersistentVolumeClaim", release.namespace)
    return [claim["metadata"]["name"] for claim in claims if claim["status"]["phase"] == "Bound"]


# -- half-way --------------------------------------------------------------------------------------------------------


@contextmanager
def no_claims(cluster: Cluster, namespace: str) -> Iterator[None]:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"persistentvolumeclaims": "0"}},
    }
    cluster.apply(quota, namespace=namespace)
    eventually(lambda: "exceeded quota" in refusal_of_a_claim(cluster, namespace), "the quota being in force")
    yield
    cluster.delete("resourcequota", "small", namespace)
    eventually(lambda: not refusal_of_a_claim(cluster, namespace), "the quota being lifted")


def refusal_of_a_claim(cluster: Cluster, namespace: str) -> str:
    """What the API server has against a claim; empty for nothing."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "tried"}, "spec": spec}
    try:
        cluster.apply(claim, namespace=namespace, options=["--dry-run=server"])
    except KubectlError as error:
        return error.said
    return ""


def as_it_is(values: Values, elsewhere: str) -> Values:
    return values


def with_an_alias(values: Values, elsewhere: str) -> Values:
    gateways = {"networkPolicy": {"allowedGateways": {"clients": {"namespace": elsewhere}}}}
    return dict(over(values, {"aliases": {"llm": {"namespace": elsewhere}}, **gateways}))


Hindrance = Callable[[Cluster, str], AbstractContextManager[Any]]


@pytest.mark.parametrize(
    ("hindered", "values", "says"),
    [
        pytest.param(no_claims, as_it_is, "exceeded quota", id="a quota refuses the claim"),
        pytest.param(lambda *_: nullcontext(), with_an_alias, "not found", id="an alias has no namespace"),
    ],
)
def test_install_that_stopped_half_way_is_fixed_by_the_next(
    hindered: Hindrance,
    values: Callable[[Values, str], Values],
    says: str,
    fresh: Release,
) -> None:
    elsewhere = f"{fresh.namespace}-clients"
    wanted = values(fresh.values, elsewhere)
    with hindered(fresh.cluster, fresh.namespace), pytest.raises(Refused, match=says):
        fresh.upgrade(wanted)
    assert fresh.helm.revisions(fresh.name, fresh.namespace)[-1]["status"] == "failed"
    with fresh.cluster.namespace(name=elsewhere):
        fresh.upgrade(wanted)
        fresh.becomes_ready()
    assert len(fresh.cluster.all("RayCluster", fresh.namespace)) == 1


# -- the end ---------------------------------------------------------------------------------------------------------

WITH_REDIS = {
    "gcsFaultTolerance": {"enabled": True, "redisAddress": "redis:6379"},
    "networkPolicy": {"redis": {"peer": {"namespace": "redis"}}},
}


def test_redis_is_emptied_after_an_uninstall_and_the_ray_cluster_goes(
    cluster: Cluster, namespace: str, helm: Helm
) -> None:
    release = Release(RAY_SERVICE, helm, cluster, namespace)
    release.upgrade(over(release.values, WITH_REDIS))
    release.becomes_ready()
    helm.uninstall(release.name, namespace)
    mentioned = {"ServiceAccount chat", "ConfigMap chat-vllm", "NetworkPolicy chat-redis-cleanup"}
    eventually(
        lambda: set(touches(cluster, namespace)) == {*RAY_SERVICE.outlives, *mentioned},
        "the RayCluster going",
        shows=lambda: cluster.tell(namespace),
    )
    eventually(lambda: "Completed" in of_cleanup(cluster, namespace), "the event of the cleanup")
    assert "FailedCreate" not in of_cleanup(cluster, namespace)


def of_cleanup(cluster: Cluster, namespace: str) -> set[str]:
    """Reasons of events of the Job that empties Redis."""
    events = cluster.all("Event", namespace)
    return {event["reason"] for event in events if event["involvedObject"]["name"].endswith("-redis-cleanup")}
