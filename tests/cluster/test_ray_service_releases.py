"""A RayService that lives, under Helm 3 and Helm 4: a scaler beside them, and hooks."""

import json
from collections.abc import Iterator

import pytest
import yaml

from charts.kit import over
from cluster.kit.charts import ANOTHER_MODEL, NOWHERE_TO_RUN, PLACE, RAY_SERVICE, put_config
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm, Refused
from cluster.kit.releases import Release, released
from cluster.kit.stillness import at_rest, touches
from cluster.kit.wait import eventually, stays

HOOK = "chat-weights-upgrade"


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


# -- a scaler --------------------------------------------------------------------------------------------------------


def test_upgrade_keeps_the_count_that_rays_autoscaler_set(release: Release) -> None:
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


def test_upgrade_fetches_another_model_before_it_touches_anything(release: Release) -> None:
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
    eventually(lambda: "1" * 40 in str(put_config(release)), "Ray getting the other model")
    release.becomes_ready()
    assert not release.cluster.find("NetworkPolicy", policy["metadata"]["name"], release.namespace)
    eventually(lambda: not release.cluster.find("Job", HOOK, release.namespace), "the hook being gone")


def hooks(release: Release) -> list[Object]:
    """Those that the last upgrade ran, failed or not."""
    reported = release.helm(["get", "hooks", release.name, f"--namespace={release.namespace}"])
    found = [item for item in yaml.safe_load_all(reported) if item]
    return [item for item in found if item["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"]


def test_test_pod_stays_for_its_log_until_the_next_test(release: Release) -> None:
    """That it completes under simulated nodes proves nothing: only what Helm does with it is looked at."""
    found = []
    for _ in range(2):
        release.helm(["test", release.name, f"--namespace={release.namespace}"])
        found.append(release.cluster.one("Pod", "chat-test", release.namespace)["metadata"]["uid"])
    assert found[0] != found[1]
