"""The isolation of a tenant on a real API server with a real KubeRay: what it allows, what it refuses."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from charts.kit import over
from cluster.kit.attempts import ATTEMPTS, OF_THE_CLUSTER, Attempt
from cluster.kit.cluster import Cluster, Object, condition, reason
from cluster.kit.helm import Helm
from cluster.kit.small import Small
from cluster.kit.tenants import Person, Tenant, tenant
from cluster.kit.wait import eventually
from rayhelm.live.cluster.kubectl import KubectlError

PLACE = Small("tenants")
TWO_GPUS = {"workerGroups": {"gpu": {"minReplicas": 2, "maxReplicas": 2}}}
AT_THE_LEAST = {"limits": {"container": {"min": {"cpu": "50m", "memory": "64Mi"}}}}
"""The LimitRange at the edge of what the rules allow."""
ONE_OF_EACH = {
    "quota": {
        "gpus": {"nvidia.com/gpu": {"planned": 1, "upgradeSurge": 0}},
        "objects": {"rayServices": 1},
        "storage": {"size": "250Gi"},
        "priorityClasses": {"tenants-high": {"pods": 1}},
    },
    "limits": {"claim": {"max": "220Gi"}},
}


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "tenants-high"},
            "value": 7,
        }
    ]
    with cluster.machines([*PLACE.machines(), *classes]):
        yield


@pytest.fixture(scope="module")
def helm4(cluster: Cluster) -> Helm:
    return Helm.of_major("4", cluster.place.kubeconfig)


@pytest.fixture(scope="module")
def releases(cluster: Cluster) -> Iterator[str]:
    """Where the releases of the chart lie."""
    with cluster.namespace() as name:
        yield name


@pytest.fixture(scope="module")
def team_b(cluster: Cluster, helm4: Helm, releases: str) -> Iterator[Tenant]:
    """Has one GPU, and none for upgrades."""
    with tenant(cluster, helm4, releases, ONE_OF_EACH) as made:
        cluster.apply(secret("of-the-team"), namespace=made.namespace)
        yield made


@pytest.fixture(scope="module")
def team_a(cluster: Cluster, helm4: Helm, releases: str, team_b: Tenant) -> Iterator[Tenant]:
    """Has two GPUs, two for upgrades, and a service on them that its own pipeline installed."""
    with tenant(cluster, helm4, releases, AT_THE_LEAST) as made:
        cluster.apply(secret("of-the-team"), namespace=made.namespace)
        deploy(made, service_values(made))
        deploy(team_b, PLACE.values(cluster.place, TWO_GPUS))
        cluster.becomes_ready("chat", made.namespace)
        yield made


def service_values(team: Tenant) -> dict[str, Any]:
    return PLACE.values(team.cluster.place, TWO_GPUS)


def deploy(team: Tenant, values: dict[str, Any]) -> None:
    """As the team's pipeline does."""
    team.helm.install("ray-service", "chat", team.namespace, values, *team.deployer.flags)


def secret(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": "of this team"}}


def people(team: Tenant) -> dict[str, Person]:
    return {"viewer": team.viewer, "editor": team.editor, "deployer": team.deployer}


# -- rights ----------------------------------------------------------------------------------------------------------


def path_in(attempt: Attempt, team: Tenant) -> str:
    pods = team.cluster.all("Pod", team.namespace, {"ray.io/node-type": "head"})
    return attempt.path.format(ns=team.namespace, pod=pods[0]["metadata"]["name"], service="chat")


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=str)
def test_in_the_own_namespace_each_may_what_is_said_and_nothing_else(team_a: Tenant, attempt: Attempt) -> None:
    path = path_in(attempt, team_a)
    for role, person in people(team_a).items():
        may = role in attempt.by
        assert person.may(team_a.namespace, attempt.verb, attempt.resource, attempt.group) == may, role
        status, said = person.tries(attempt.method, path, attempt.body)
        assert (status != 403) == may, f"{role}: {status} {said}"
        if not may:
            assert "cannot" in said
            assert person.user in said


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=str)
def test_no_user_may_act_in_the_namespace_of_another_team(team_a: Tenant, team_b: Tenant, attempt: Attempt) -> None:
    eventually(lambda: team_b.cluster.all("Pod", team_b.namespace, {"ray.io/node-type": "head"}), "a head of team B")
    path = path_in(attempt, team_b)
    for role, person in people(team_a).items():
        assert not person.may(team_b.namespace, attempt.verb, attempt.resource, attempt.group), role
        status, said = person.tries(attempt.method, path, attempt.body)
        assert status == 403, f"{role}: {status} {said}"


@pytest.mark.parametrize("path", OF_THE_CLUSTER)
def test_no_user_may_list_across_namespaces(team_a: Tenant, path: str) -> None:
    for person in people(team_a).values():
        assert person.tries("GET", path)[0] == 403


@pytest.mark.parametrize("verb", ["impersonate", "bind", "escalate"])
def test_no_user_may_escalate(team_a: Tenant, verb: str) -> None:
    resources = {"impersonate": ("users", "groups", "serviceaccounts"), "bind": ("roles",), "escalate": ("roles",)}
    for person in people(team_a).values():
        for resource in resources[verb]:
            group = "" if verb == "impersonate" else "rbac.authorization.k8s.io"
            assert not person.may(team_a.namespace, verb, resource, group)


def test_refused_attempt_is_allowed_for_an_administrator(team_a: Tenant) -> None:
    """What the tables above are held against."""
    admin = Person(team_a.cluster, "admin", ("system:masters",))
    for attempt in ATTEMPTS:
        assert admin.may(team_a.namespace, attempt.verb, attempt.resource, attempt.group)
    assert admin.tries("GET", f"/api/v1/namespaces/{team_a.namespace}/secrets")[0] == 200


def test_pipeline_tests_its_release(team_a: Tenant) -> None:
    said = team_a.helm(["test", "chat", f"--namespace={team_a.namespace}", *team_a.deployer.flags])
    assert "Succeeded" in said


# -- quota -----------------------------------------------------------------------------------------------------------


def test_quota_refuses_extra_pod_and_operator_reports_it(team_a: Tenant, team_b: Tenant) -> None:
    """Two workers with a GPU each, and one GPU."""
    cluster, name = team_b.cluster, team_b.namespace
    words = (
        f"exceeded quota: {name}, requested: requests.nvidia.com/gpu=1,"
        " used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=1"
    )
    eventually(lambda: words in events(team_b, "FailedToCreateWorkerPod"), words, shows=lambda: cluster.tell(name))
    (ray_cluster,) = eventually(
        lambda: [
            item for item in cluster.all("RayCluster", name) if words in str(item.get("status", {}).get("conditions"))
        ],
        "the same words in the status of the Ray cluster",
        shows=lambda: cluster.tell(name),
    )
    assert reason(ray_cluster, "ReplicaFailure") == "FailedCreateWorkerPod"
    workers = cluster.all("Pod", name, {"ray.io/node-type": "worker"})
    assert len(workers) == 1
    assert condition(cluster.one("RayService", "chat", name), "Ready") != "True"


def events(team: Tenant, reason: str) -> str:
    return "\n".join(
        event["message"] for event in team.cluster.all("Event", team.namespace) if event["reason"] == reason
    )


def pod(**changes: Any) -> Object:
    limits = {"cpu": "1", "memory": "1Gi"}
    container = {
        "name": "x",
        "image": "x",
        "resources": {"limits": limits},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    base = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}}
    spec = {"containers": [over(container, changes.pop("container", {}))], "securityContext": security, **changes}
    return {**base, "spec": spec}


def with_gpus(resource: str, count: int) -> Object:
    return pod(container={"resources": {"limits": {resource: str(count)}}})


def service(kind: str) -> Object:
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "tried"},
        "spec": {"type": kind, "ports": [{"port": 80}]},
    }  # fmt: skip


def claim(size: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "tried"}, "spec": spec}


INGRESS = {
    "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "tried"},
    "spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}},
}  # fmt: skip
GATEWAY = {
    "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "tried"},
    "spec": {"gatewayClassName": "x", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}  # fmt: skip
RESOURCE_CLAIM = {
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "tried"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
}  # fmt: skip
REFUSED = {
    "more GPUs than the quota": (with_gpus("nvidia.com/gpu", 2), "exceeded quota: {ns}, "),
    "a GPU resource without a quota": (with_gpus("amd.com/gpu", 1), "exceeded quota: {ns}-denied, "),
    "a priority over all": (pod(priorityClassName="system-node-critical"), "-priority, requested: pods=1"),
    "a load balancer": (service("LoadBalancer"), "exceeded quota: {ns}-denied, "),
    "a node port": (service("NodePort"), "exceeded quota: {ns}-denied, "),
    "an ingress": (INGRESS, "exceeded quota: {ns}-denied, "),
    "a gateway": (GATEWAY, "exceeded quota: {ns}-denied, "),
    "storage over the quota": (claim("100Gi"), "requested: requests.storage=100Gi"),
    "a claim over the limit": (claim("230Gi"), "maximum storage usage per PersistentVolumeClaim is 220Gi"),
    "a container over the profile": (pod(hostNetwork=True), 'violates PodSecurity "restricted:latest"'),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_over_the_bounds_is_refused_for_every_user(team_a: Tenant, team_b: Tenant, what: str) -> None:
    item, words = REFUSED[what]
    with pytest.raises(KubectlError) as caught:
        team_b.cluster.apply(item, namespace=team_b.namespace, options=["--dry-run=server"])
    assert words.format(ns=team_b.namespace) in caught.value.said


def test_what_is_within_the_bounds_is_taken(team_b: Tenant) -> None:
    cluster_ip = over(service("ClusterIP"), {"metadata": {"name": "taken"}})
    for item in (pod(), pod(priorityClassName="tenants-high"), cluster_ip, claim("1Gi"), RESOURCE_CLAIM):
        team_b.cluster.apply(item, namespace=team_b.namespace, options=["--dry-run=server"])


def test_priority_class_is_counted_for_itself(team_b: Tenant) -> None:
    cluster, name = team_b.cluster, team_b.namespace
    first = over(pod(priorityClassName="tenants-high"), {"metadata": {"name": "first"}})
    cluster.apply(first, namespace=name)
    with pytest.raises(KubectlError) as caught:
        cluster.apply(pod(priorityClassName="tenants-high"), namespace=name, options=["--dry-run=server"])
    assert f"exceeded quota: {name}-priority-tenants-high, requested: pods=1, used: pods=1" in caught.value.said
    cluster.delete("pod", "first", name, "--grace-period=0")
    eventually(lambda: used(team_b, f"{name}-priority-tenants-high")["pods"] == "0", "its place being free again")


def used(team: Tenant, quota: str) -> Object:
    found: Object = team.cluster.one("ResourceQuota", quota, team.namespace)["status"]["used"]
    return found


def test_ray_services_are_counted(team_a: Tenant, team_b: Tenant) -> None:
    spec = team_b.cluster.one("RayService", "chat", team_b.namespace)["spec"]
    another = {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": "another"}, "spec": spec}
    status, said = team_b.editor.tries("POST", f"/apis/ray.io/v1/namespaces/{team_b.namespace}/rayservices", another)
    assert status == 403
    assert "exceeded quota" in said
    assert "count/rayservices.ray.io=1" in said


def test_upgrade_fits_the_quota_and_one_gpu_less_does_not(team_a: Tenant) -> None:
    cluster, name, chats = team_a.cluster, team_a.namespace, {"ray.io/originated-from-cr-name": "chat"}
    (before,) = cluster.all("RayCluster", name, chats)
    eventually(lambda: used(team_a, name)["requests.nvidia.com/gpu"] == "2", "two GPUs being counted")
    assert cluster.one("ResourceQuota", name, name)["spec"]["hard"]["requests.nvidia.com/gpu"] == "4"

    team_a.install(over(AT_THE_LEAST, {"quota": {"gpus": {"nvidia.com/gpu": {"upgradeSurge": 1}}}}))
    team_a.wait_until_unchanged()
    deploy(team_a, over(service_values(team_a), {"workerGroups": {"gpu": {"env": {"NCCL_DEBUG": "WARN"}}}}))
    words = f"exceeded quota: {name}, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=3, limited: "
    eventually(lambda: words in events(team_a, "FailedToCreateWorkerPod"), words, shows=lambda: cluster.tell(name))
    stuck = eventually(
        lambda: condition(found := cluster.one("RayService", "chat", name), "UpgradeInProgress") == "True" and found,
        "the upgrade being reported",
    )
    assert condition(stuck, "Ready") == "True", "the old cluster serves on"
    assert stuck["status"]["activeServiceStatus"]["rayClusterName"] == before["metadata"]["name"]
    (pending,) = [
        item for item in cluster.all("RayCluster", name, chats) if item["metadata"]["uid"] != before["metadata"]["uid"]
    ]
    eventually(
        lambda: (
            reason(cluster.one("RayCluster", pending["metadata"]["name"], name), "ReplicaFailure")
            == "FailedCreateWorkerPod"
        ),
        "the failure in the status of the new cluster",
    )

    team_a.install(AT_THE_LEAST)
    eventually(
        lambda: (
            [item["metadata"]["name"] for item in cluster.all("RayCluster", name, chats)]
            == [pending["metadata"]["name"]]
        ),
        "the new cluster having taken over",
        shows=lambda: cluster.tell(name),
    )
    cluster.becomes_ready("chat", name)
    eventually(
        lambda: used(team_a, name)["requests.nvidia.com/gpu"] == "2",
        "the GPUs of the old cluster being free",
    )


# -- what KubeRay would make for an editor, who may not make it --------------------------------------------------------


def head(**changes: Any) -> Object:
    return {"rayClusterConfig": {"headGroupSpec": changes}}


def head_pod(**changes: Any) -> Object:
    return head(template={"spec": changes})


BY_THE_OPERATOR = {
    "host-network": (head_pod(hostNetwork=True), 'violates PodSecurity "restricted:latest"'),
    "load-balancer": (
        head(serviceType="LoadBalancer"),
        "exceeded quota: {ns}-denied, requested: services.loadbalancers=1",
    ),
    "ingress": (
        head(enableIngress=True),
        "exceeded quota: {ns}-denied, requested: count/ingresses.networking.k8s.io=1",
    ),
    "priority": (head_pod(priorityClassName="system-node-critical"), "exceeded quota: {ns}-other-priority, "),
}
"""RayServices of an editor, and what the operator gets as an answer."""


@pytest.fixture(scope="module")
def by_the_operator(team_a: Tenant, team_b: Tenant) -> None:
    """All of them at once, and one that reaches for the namespace of another team."""
    elsewhere = {"metadata": {"namespace": team_b.namespace}}
    across = over(head(template=elsewhere, headService=elsewhere), {"serveService": elsewhere})
    for name, change in {**{name: row[0] for name, row in BY_THE_OPERATOR.items()}, "across": across}.items():
        spec = over(team_a.cluster.one("RayService", "chat", team_a.namespace)["spec"], change)
        for group in spec["rayClusterConfig"]["workerGroupSpecs"]:
            group.update(minReplicas=0, replicas=0)
        body = {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": name}, "spec": spec}
        status, said = team_a.editor.tries("POST", f"/apis/ray.io/v1/namespaces/{team_a.namespace}/rayservices", body)
        assert status == 201, said


@pytest.mark.parametrize("what", BY_THE_OPERATOR)
def test_operator_has_no_more_access_than_the_team(team_a: Tenant, by_the_operator: None, what: str) -> None:
    words = BY_THE_OPERATOR[what][1].format(ns=team_a.namespace)
    eventually(
        lambda: [
            event
            for event in team_a.cluster.all("Event", team_a.namespace)
            if words in event["message"] and event["involvedObject"]["name"].startswith(f"{what}-")
        ],
        words,
        shows=lambda: team_a.cluster.tell(team_a.namespace),
    )


def test_service_cannot_reach_another_namespace(team_a: Tenant, team_b: Tenant, by_the_operator: None) -> None:
    cluster = team_a.cluster

    def made(kind: str, namespace: str) -> list[str]:
        names = [item["metadata"]["name"] for item in cluster.all(kind, namespace)]
        return [name for name in names if name.startswith("across")]

    eventually(lambda: made("Pod", team_a.namespace), "its head", shows=lambda: cluster.tell(team_a.namespace))
    eventually(lambda: made("Service", team_a.namespace), "its Service")
    assert not made("Pod", team_b.namespace)
    assert not made("Service", team_b.namespace)


# -- limits, accounts ------------------------------------------------------------------------------------------------


def test_limit_range_gives_default_requests(team_a: Tenant) -> None:
    bare = pod(container={"resources": {"limits": {"cpu": None, "memory": None}}})
    made = taken(team_a, bare)
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "100m", "memory": "128Mi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }


def test_pod_without_a_service_account_gets_no_token(team_a: Tenant, releases: str) -> None:
    assert "volumes" not in taken(team_a, pod())["spec"]
    elsewhere = Tenant(team_a.cluster, team_a.helm, releases, releases)
    assert "kube-api-access" in str(taken(elsewhere, pod())["spec"]["volumes"])


def taken(team: Tenant, item: Object) -> Object:
    """The object as the API server would store it."""
    path = f"/api/v1/namespaces/{team.namespace}/pods?dryRun=All"
    status, said = Person(team.cluster, "admin", ("system:masters",)).tries("POST", path, item)
    assert status == 201, said
    made: Object = json.loads(said)
    return made
