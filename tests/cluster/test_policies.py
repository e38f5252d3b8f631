"""The policies on a real API server: it reports the same violations as the evaluation offline."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from charts.kit import example
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm, Refused
from cluster.kit.policies import Answer, Asked, in_force
from cluster.kit.tenants import tenant
from cluster.kit.wait import eventually
from policies.kit.cases import CASES, FOLDER, NAMES, Case, asked, case, documents, previous_objects
from rayhelm.deploy.charts.helm import template
from rayhelm.live.cluster.kubectl import KubectlError

OPEN: dict[str, str] = {}
"""Labels of a namespace where Pod Security lets everything through, so that policies alone judge."""
REASON = {"rayhelm.dev/pod-security-reason": "policies alone judge here"}
BEFORE = "before"
"""A RayCluster that was there before the policies."""
BAD = [one for one in CASES if not one.good]
IMMUTABLE = ("Pod", "Job")
OF_METADATA = {"service-name", "service-annotation", "dns-name", "pod-security-level"}
"""Rules that judge no field of the spec. An annotation of the RayCluster has its own case offline."""
CONFLICT = 409


@pytest.fixture(scope="module")
def under(cluster: Cluster) -> Iterator[Asked]:
    """The policies, in a cluster where something that breaks them is there already."""
    with cluster.namespace(OPEN) as name:
        cluster.apply(*_surroundings())
        cluster.patch("namespace", name, "", {"metadata": {"annotations": REASON}})
        cluster.apply(_broken_already(), namespace=name)
        with in_force(cluster, name) as asked:
            yield asked
        for item in _surroundings():
            cluster.delete(item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", ""))
        if cluster.find("RayCluster", BEFORE, name):
            cluster.patch("raycluster", BEFORE, name, {"metadata": {"finalizers": None}})


def _is_changed(one: Case) -> bool:
    """Whether a change of the spec alone makes it bad."""
    about = one.item["metadata"]
    by_annotation = "ray.io/external-storage-namespace" in about.get("annotations", {})
    mutable = one.item["kind"] not in IMMUTABLE and "spec" in one.item
    return mutable and not one.before and not one.rules & OF_METADATA and not by_annotation


def _surroundings() -> list[Object]:
    """What cases name: namespaces, and classes that pods are refused without."""
    made = template("platform", "platform", "rayhelm-system", {})
    classes = [item for item in made if item["kind"] == "PriorityClass"]
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }
    return [runtime, *_namespaces(), *(item for name in NAMES for item in previous_objects(name)), *classes]


def _namespaces() -> list[Object]:
    previous = {item["metadata"]["name"] for name in NAMES for item in previous_objects(name)}
    files = [FOLDER / name / f"{which}.yaml" for name in NAMES for which in ("good", "bad")]
    found = {
        item["metadata"]["name"]: item for file in files for item in documents(file) if item["kind"] == "Namespace"
    }
    return [item for name, item in found.items() if name not in previous]


def _broken_already() -> Object:
    """It breaks several policies, and has no pods: it is suspended."""
    item = case("host-namespaces", "cluster", "RayCluster")
    item["metadata"] = {"name": BEFORE, "finalizers": ["example.com/kept"]}
    worker = copy.deepcopy(item["spec"]["headGroupSpec"]["template"])
    group = {
        "groupName": "gpu",
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 4,
        "rayStartParams": {},
        "template": worker,
    }
    item["spec"].update(suspend=True, workerGroupSpecs=[group], authOptions={"mode": "disabled"})
    item["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = "rayproject/ray:latest"
    return item


# -- violations --------------------------------------------------------------------------------------------------------


def test_policy_expressions_have_no_type_warnings(under: Asked) -> None:
    for name in NAMES:

        def looked_at(name: str = name) -> bool:
            found = _policy(under.cluster, name)
            return bool(found.get("status", {}).get("observedGeneration", 0) == found["metadata"]["generation"])

        eventually(looked_at, f"types of {name} being looked at")
        assert not _policy(under.cluster, name)["status"].get("typeChecking", {}).get("expressionWarnings")


def _policy(cluster: Cluster, name: str) -> Object:
    found: Object = json.loads(cluster.kubectl("get", "validatingadmissionpolicy", f"rayhelm-{name}", "--output=json"))
    return found


@pytest.mark.parametrize("one", CASES, ids=str)
def test_api_server_and_offline_run_report_the_same_violations(under: Asked, one: Case) -> None:
    answer = under.about(one)
    assert bool(answer.rules) == (not one.good), answer
    assert answer.rules <= one.rules, answer
    assert one.good == (answer.status < 300), answer
    reported = [violation.message for violation in asked(one.item, one.namespace, one.before)]
    assert one.good or any(message in answer.message for message in reported), "the same words"


@pytest.mark.parametrize("one", [one for one in BAD if _is_changed(one)], ids=str)
def test_policies_refuse_an_update_to_a_bad_object(under: Asked, one: Case) -> None:
    good = _made_good(under, one)

    def changed() -> Answer | None:
        """None where the operator wrote it meanwhile."""
        there = under.there(good)
        answer = under.replace({**there, "spec": {**_kept(there), **one.item["spec"]}})
        return None if answer.status == CONFLICT else answer

    answer = eventually(changed, f"an answer to {one}")
    assert answer.rules
    assert answer.rules <= one.rules


def _made_good(under: Asked, one: Case) -> Object:
    """A good object of its kind and namespace, which is there for the rest of the module."""
    namespace = one.item["metadata"].get("namespace", under.namespace)
    other = ("type", "clusterSelector")  # an alias, and a job on a cluster that is there
    found = [
        each.item
        for each in CASES
        if each.good and each.item["kind"] == one.item["kind"] and not set(other) & each.item["spec"].keys()
    ]
    good = next((item for item in found if item["metadata"].get("namespace", under.namespace) == namespace), found[0])
    item = copy.deepcopy(good)
    item["metadata"] = {"name": f"good-{item['kind'].lower()}", "namespace": namespace}
    if item["kind"] in ("RayCluster", "RayJob"):
        item["spec"]["suspend"] = True
    if item["kind"] == "RayJob":
        item["spec"]["shutdownAfterJobFinishes"] = True
    under.cluster.apply(item, namespace=namespace)
    return item


def _kept(there: Object) -> Object:
    """Of a Service what the API server gave it; of other kinds nothing."""
    return {key: there["spec"][key] for key in ("clusterIP", "clusterIPs") if key in there["spec"]}


# -- what is there already -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        [{"op": "add", "path": "/metadata/labels", "value": {"team": "search"}}],
        [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 3}],
        [{"op": "replace", "path": "/spec/workerGroupSpecs/0/maxReplicas", "value": 8}],
        [{"op": "add", "path": "/spec/workerGroupSpecs/0/scaleStrategy", "value": {"workersToDelete": ["a-pod"]}}],
        [{"op": "replace", "path": "/spec/suspend", "value": False}],
    ],
    ids=["label", "replicas", "bounds", "workers to delete", "suspend"],
)
def test_object_that_breaks_policies_can_be_scaled_and_labeled(under: Asked, change: list[Object]) -> None:
    assert not _patch(under, change)


def test_object_that_breaks_policies_is_checked_when_its_pods_change(under: Asked) -> None:
    """The API server reports the first refusal only."""
    path = "/spec/workerGroupSpecs/0/template/spec/hostPID"
    assert "denied request: " in _patch(under, [{"op": "add", "path": path, "value": True}])


def test_status_of_an_object_that_breaks_policies_can_be_written(under: Asked) -> None:
    change = [{"op": "add", "path": "/status", "value": {"state": "suspended"}}]
    assert not _patch(under, change, "--subresource=status")


def test_object_that_breaks_policies_can_be_deleted(under: Asked) -> None:
    under.cluster.delete("raycluster", BEFORE, under.namespace)
    going = under.cluster.one("RayCluster", BEFORE, under.namespace)
    assert going["metadata"]["deletionTimestamp"]
    assert not _patch(under, [{"op": "remove", "path": "/metadata/finalizers"}], dry=False)
    eventually(lambda: not under.cluster.find("RayCluster", BEFORE, under.namespace), "it being gone")


def _patch(under: Asked, change: list[Object], *options: str, dry: bool = True) -> str:
    """What the API server has against a change of what was there before; empty for nothing."""
    where = [f"--namespace={under.namespace}", *(["--dry-run=server"] if dry else []), *options]
    try:
        under.cluster.kubectl("patch", "raycluster", BEFORE, "--type=json", "--patch", json.dumps(change), *where)
    except KubectlError as error:
        return str(error)
    return ""


# -- other objects -----------------------------------------------------------------------------------------------------


def test_policies_hold_for_older_api_versions(under: Asked) -> None:
    item = case("token-auth", "cluster-without", "RayCluster")
    assert under.create({**item, "apiVersion": "ray.io/v1alpha1"}).rules == {"auth-reason"}


def test_policies_hold_for_ephemeral_containers(under: Asked) -> None:
    pod = case("token-auth", "ray-start-pod", "Pod", good=True)
    pod["metadata"] = {"name": "ray", "labels": {"ray.io/cluster": "chat"}}
    under.cluster.apply(pod, namespace=under.namespace)
    debug = {"spec": {"ephemeralContainers": [{"name": "look", "image": "busybox:latest", "stdin": True}]}}
    where = [f"--namespace={under.namespace}", "--subresource=ephemeralcontainers", "--dry-run=server"]
    with pytest.raises(KubectlError, match="image-latest: busybox:latest"):
        under.cluster.kubectl("patch", "pod", "ray", "--patch", json.dumps(debug), *where)


def test_policy_refuses_a_helm_4_rewrite_of_a_tenant_namespace_but_not_its_chart(under: Asked, helm: Helm) -> None:
    with tenant(under.cluster, helm, under.namespace) as team:
        before = under.cluster.one("Namespace", team.namespace)["metadata"]["labels"]
        with pytest.raises(Refused, match="namespace-tenant: "):
            helm.install("gateway", "edge", team.namespace, example("gateway/minimal"), "--create-namespace")
        assert under.cluster.one("Namespace", team.namespace)["metadata"]["labels"] == before
        team.install({"podSecurity": {"level": "baseline", "reason": "a sidecar of theirs needs it"}})
        after = under.cluster.one("Namespace", team.namespace)["metadata"]["labels"]
        assert after["pod-security.kubernetes.io/enforce"] == "baseline"


# -- bounds ----------------------------------------------------------------------------------------------------------


def test_policies_read_the_longest_config_within_the_cost_limit(under: Asked) -> None:
    item = case("serve-config-form", "json", good=True)
    config = json.loads(item["spec"]["serveConfigV2"])
    (model,) = config["applications"][0]["args"]["llm_configs"]
    env = {f"VARIABLE_{number}": "x" for number in range(20)}
    models = [{**model, "runtime_env": {"env_vars": env}} for _ in range(60)]
    while True:
        config["applications"][0]["args"]["llm_configs"] = models
        text = json.dumps(config, indent=2, sort_keys=True) + "\n"
        if len(text) <= 32768:
            break
        models = models[:-1]
    item["spec"]["serveConfigV2"] = text
    assert len(text) > 30000
    assert under.create(item).status == 201, under.create(item)


@pytest.mark.parametrize(
    ("objects", "count", "length"), [(1, 390, 12), (1, 550, 4), (3, 280, 12), (2, 500, 4), (2, 110, 99)]
)
def test_policies_compare_many_keys_within_the_cost_limit(under: Asked, objects: int, count: int, length: int) -> None:
    item = case("serve-config-form", "json", good=True)
    config = json.loads(item["spec"]["serveConfigV2"])
    keys = {f"{number:0{length}d}": 1 for number in range(count)}
    config["applications"][0]["args"]["more"] = {f"object-{number}": keys for number in range(objects)}
    item["spec"]["serveConfigV2"] = json.dumps(config, indent=2, sort_keys=True) + "\n"
    assert under.create(item).status == 201, under.create(item)


def test_policies_read_many_worker_groups_within_the_cost_limit(under: Asked) -> None:
    item = case("gpu-owner", "owned", good=True)
    (group,) = item["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    container["env"] = [{"name": f"VARIABLE_{number}", "value": "x" * 40} for number in range(60)]
    item["spec"]["rayClusterConfig"]["workerGroupSpecs"] = [{**group, "groupName": f"gpu-{n}"} for n in range(60)]
    assert under.create(item).status == 201, under.create(item)


# -- actions ---------------------------------------------------------------------------------------------------------


def test_policy_with_action_warn_admits_with_a_warning(under: Asked) -> None:
    bad = case("token-auth", "not-set")
    _action(under, "token-auth", "Warn")
    eventually(lambda: under.create(bad).status == 201, "the policy letting it pass")
    assert "auth-reason: " in under.create(bad).warnings
    _action(under, "token-auth", "Deny")
    eventually(lambda: under.create(bad).rules, "the policy refusing again")


def _action(under: Asked, name: str, action: str) -> None:
    change: Any = {"spec": {"validationActions": [action]}}
    patch = ["--type=merge", "--patch", json.dumps(change)]
    under.cluster.kubectl("patch", "validatingadmissionpolicybinding", f"rayhelm-{name}", *patch)


def test_policies_exempt_namespaces_of_kubernetes(under: Asked) -> None:
    bad = case("host-namespaces", "pod-with-a-gpu", "Pod")
    bad["metadata"]["namespace"] = "kube-system"
    assert not under.create(bad).rules
