"""A RayService that lives, under Helm 3 and Helm 4: a scaler beside them, hooks, an install that stops half-way."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest
import yaml

from charts.kit import example, over
from cluster.kit.charts import CHARTS, PLACE, put_config
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm, Refused
from cluster.kit.releases import Release, Values, released
from cluster.kit.stillness import at_rest, touches
from cluster.kit.wait import eventually, stays

(RAY_SERVICE,) = (chart for chart in CHARTS if chart.name == "ray-service")


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    with cluster.machines(PLACE.machines()):
        yield


@pytest.fixture(scope="module", params=["4", "3"], ids=["helm4", "helm3"])
def lasting(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Release]:
    """A release that some tests share, of one Helm."""
    with released(RAY_SERVICE, Helm.of_major(request.param, cluster.place.kubeconfig), cluster) as found:
        yield found


@pytest.fixture
def release(lasting: Release) -> Release:
    """Ready, with the values of its install."""
    lasting.upgrade()
    lasting.becomes_ready()
    return lasting


@pytest.fixture
def fresh(cluster: Cluster, namespace: str, each_helm: Helm) -> Release:
    """Not installed yet."""
    return Release(RAY_SERVICE, each_helm, cluster, namespace)


# -- a scaler --------------------------------------------------------------------------------------------------------


def test_an_upgrade_keeps_the_count_that_rays_autoscaler_set(release: Release) -> None:
    (group,) = ray_service(release)["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    assert "replicas" not in group
    scaled(release, 2)
    before = eventually(lambda: len(found := workers(release)) == 2 and found, "two workers")
    release.upgrade(RAY_SERVICE.edits["in place"](release.values))
    eventually(lambda: put_config(release)["logging_config"]["log_level"] == "DEBUG", "the edit being handed to Ray")
    stays(lambda: workers(release) == before, "the two workers are those of before", seconds=5)
    (ray_cluster,) = release.cluster.all("RayCluster", release.namespace)
    assert ray_cluster["spec"]["workerGroupSpecs"][0]["replicas"] == 2


def ray_service(release: Release) -> Object:
    """As the chart renders it."""
    manifest = release.helm(["get", "manifest", release.name, f"--namespace={release.namespace}"])
    (found,) = (item for item in yaml.safe_load_all(manifest) if item and item["kind"] == "RayService")
    return dict(found)


def scaled(release: Release, count: int) -> None:
    """As the autoscaler does it: a JSON patch, with the rights of the head's service account."""
    (ray_cluster,) = release.cluster.all("RayCluster", release.namespace)
    change = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": count}]
    account = ray_cluster["spec"]["headGroupSpec"]["template"]["spec"]["serviceAccountName"]
    release.cluster.kubectl(
        *["patch", "raycluster", ray_cluster["metadata"]["name"], f"--namespace={release.namespace}"],
        *["--type=json", f"--patch={json.dumps(change)}", f"--as=system:serviceaccount:{release.namespace}:{account}"],
    )


def workers(release: Release) -> set[str]:
    pods = release.cluster.all("Pod", release.namespace, {"ray.io/node-type": "worker"})
    return {pod["metadata"]["uid"] for pod in pods}


# -- hooks -----------------------------------------------------------------------------------------------------------

ANOTHER_MODEL = {
    "serve": {"applications": {"chat": {"models": {"llama-8b": {"revision": "1" * 40}}}}},
    "networkPolicy": {"hub": {"cidrs": ["10.2.0.0/16"]}},
}
NOWHERE_TO_RUN = {"weights": {"download": {"memory": "900Ti"}}}
HOOK = "chat-weights-upgrade"


def test_an_upgrade_fetches_another_model_before_it_touches_anything(release: Release) -> None:
    before = at_rest(release.cluster, release.namespace)
    other = over(release.values, ANOTHER_MODEL)
    with pytest.raises(Refused, match="pre-upgrade"):
        release.upgrade(over(other, NOWHERE_TO_RUN), "--timeout=5s")
    after = touches(release.cluster, release.namespace)
    assert f"Job {HOOK}" in after
    assert {key: touch for key, touch in after.items() if HOOK not in key} == before
    policy, job = sorted(hooks(release), key=lambda item: int(item["metadata"]["annotations"]["helm.sh/hook-weight"]))
    assert "10.2.0.0/16" in str(policy["spec"]["egress"])
    assert job["metadata"]["name"] == HOOK

    release.upgrade(other)
    eventually(lambda: "1" * 40 in str(put_config(release)), "Ray being told of the other model")
    release.becomes_ready()
    assert not release.cluster.find("NetworkPolicy", policy["metadata"]["name"], release.namespace)
    eventually(lambda: not release.cluster.find("Job", HOOK, release.namespace), "the hook being gone")


def hooks(release: Release) -> list[Object]:
    """Those that the last upgrade ran, failed or not."""
    told = release.helm(["get", "hooks", release.name, f"--namespace={release.namespace}"])
    found = [item for item in yaml.safe_load_all(told) if item]
    return [item for item in found if item["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"]


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
    eventually(lambda: workers(fresh), "its workers")
    fresh.upgrade(over(without, {"weights": {"enabled": True, "claim": {"storageClass": PLACE.name}}}))
    eventually(lambda: bound(fresh) == ["chat-weights"], "the claim being bound")
    fresh.becomes_ready()


def bound(release: Release) -> list[str]:
    claims = release.cluster.all("PersistentVolumeClaim", release.namespace)
    return [claim["metadata"]["name"] for claim in claims if claim["status"]["phase"] == "Bound"]


def test_the_test_pod_stays_for_its_log_until_the_next_test(release: Release) -> None:
    """That it completes under simulated nodes proves nothing: only what Helm does with it is looked at."""
    found = []
    for _ in range(2):
        release.helm(["test", release.name, f"--namespace={release.namespace}"])
        found.append(release.cluster.one("Pod", "chat-test", release.namespace)["metadata"]["uid"])
    assert found[0] != found[1]


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
    mentioned = {"ServiceAccount chat", "ConfigMap chat-vllm"}
    eventually(
        lambda: set(touches(cluster, namespace)) == {*RAY_SERVICE.outlives, *mentioned},
        "the RayCluster going",
        shows=lambda: cluster.tell(namespace),
    )
    events = cluster.all("Event", namespace)
    cleaned = [event["reason"] for event in events if event["involvedObject"]["name"].endswith("-redis-cleanup")]
    assert "Completed" in cleaned
    assert "FailedCreate" not in cleaned


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
    eventually(lambda: cluster.one("ResourceQuota", "small", namespace).get("status", {}).get("hard"), "the quota")
    yield
    cluster.delete("resourcequota", "small", namespace)
    eventually(lambda: not cluster.find("ResourceQuota", "small", namespace), "the quota being lifted")


def as_it_is(values: Values, elsewhere: str) -> Values:
    return values


def with_an_alias(values: Values, elsewhere: str) -> Values:
    gateways = {"networkPolicy": {"gateways": {"callers": {"namespace": elsewhere}}}}
    return dict(over(values, {"aliases": {"llm": {"namespace": elsewhere}}, **gateways}))


Hindrance = Callable[[Cluster, str], AbstractContextManager[Any]]


@pytest.mark.parametrize(
    ("hindered", "values", "says"),
    [
        pytest.param(no_claims, as_it_is, "exceeded quota", id="a quota refuses the claim"),
        pytest.param(lambda *_: nullcontext(), with_an_alias, "not found", id="an alias has no namespace"),
    ],
)
def test_an_install_that_stopped_half_way_is_mended_by_the_next(
    hindered: Hindrance,
    values: Callable[[Values, str], Values],
    says: str,
    fresh: Release,
) -> None:
    elsewhere = f"{fresh.namespace}-callers"
    wanted = values(fresh.values, elsewhere)
    with hindered(fresh.cluster, fresh.namespace), pytest.raises(Refused, match=says):
        fresh.upgrade(wanted)
    assert fresh.helm.revisions(fresh.name, fresh.namespace)[-1]["status"] == "failed"
    with fresh.cluster.namespace(name=elsewhere):
        fresh.upgrade(wanted)
        fresh.becomes_ready()
    assert len(fresh.cluster.all("RayCluster", fresh.namespace)) == 1
