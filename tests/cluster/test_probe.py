"""The objects of `rayhelm probe --setup` on a real API server: what the account of the probe can make of its Jobs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.kit.cluster import Cluster
from cluster.kit.wait import eventually
from rayhelm.facts import load_catalog
from rayhelm.live.cluster.kinds import CONFIG_MAPS, JOBS, SECRETS
from rayhelm.live.cluster.reader import ForbiddenError, ReadError
from rayhelm.live.cluster.writer import ClusterWriter, connect_writer
from rayhelm.live.probe.jobs import PoolTarget, build_node_job, build_pair_job
from rayhelm.live.probe.objects import ACCOUNT, NAMESPACE, build_setup
from rayhelm.live.probe.policy import POLICY
from shared.fleets import load
from testbed.control_plane.kubeconfig import with_token

Object = dict[str, Any]
IMAGE = "registry.example/ray:1"
FLEET = """\
fleet: probed
pools:
  gpu: {gpu: L4-24GB, nodes: 2}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, unpinnedReason: a test of probe}
"""
SECRET = {"name": "x", "secret": {"secretName": "ai-tls"}}


@pytest.fixture(scope="module")
def account(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterWriter]:
    """A connection with the account of the probe, once the policy is in force."""
    objects = build_setup(images=[IMAGE])
    cluster.apply(*objects)
    try:
        token = cluster.kubectl("create", "token", ACCOUNT, f"--namespace={NAMESPACE}").strip()
        file = tmp_path_factory.mktemp("probe") / "kubeconfig"
        writer = connect_writer(kubeconfig=Path(with_token(file, cluster.place.kubeconfig, "probe", token)))
        eventually(lambda: refuse(writer, broken("image", "registry.example/other:1")), "the policy is in force")
        yield writer
    finally:
        for item in reversed(objects):
            if item["kind"] in ("Namespace", "ClusterRole", "ClusterRoleBinding") or item["metadata"]["name"] == POLICY:
                cluster.delete(item["kind"], item["metadata"]["name"])


def jobs() -> list[Object]:
    loaded, known = load(FLEET), load_catalog()
    gpu = known.gpu("L4-24GB")
    target = PoolTarget("gpu", loaded.fleet.pools["gpu"], gpu, gpu.id, IMAGE, on_cpu=False)
    return [build_node_job(target, "one", 1, 60), build_pair_job(target, ("one", "two"), 60)]


def broken(field: str, value: object) -> Object:
    """The Job of a node with one field of its pod, or of its container, that the policy refuses."""
    job = jobs()[0]
    pod = job["spec"]["template"]["spec"]
    (pod["containers"][0] if field in ("image", "envFrom") else pod)[field] = value
    return job


def refuse(writer: ClusterWriter, job: Object) -> str:
    """Return the message of the API server; empty if it creates the Job, which is deleted then."""
    try:
        writer.create(JOBS, job)
    except ReadError as error:
        return str(error)
    writer.delete(JOBS, job["metadata"]["name"], NAMESPACE)
    return ""


def test_account_of_the_probe_creates_its_jobs(account: ClusterWriter) -> None:
    assert [refuse(account, job) for job in jobs()] == ["", ""]


@pytest.mark.parametrize(
    ("rule", "field", "value"),
    [
        ("probe-account", "serviceAccountName", "default"),
        ("probe-account", "serviceAccountName", "platform-doctor"),
        ("probe-token", "automountServiceAccountToken", True),
        ("probe-volumes", "volumes", [SECRET]),
        ("probe-environment", "envFrom", [{"secretRef": {"name": "ai-tls"}}]),
        ("probe-image", "image", "registry.example/other:1"),
        ("probe-priority", "priorityClassName", "system-cluster-critical"),
        ("probe-pull-secrets", "imagePullSecrets", [{"name": "x"}]),
    ],
)
def test_account_of_the_probe_creates_no_other_job(
    account: ClusterWriter, rule: str, field: str, value: object
) -> None:
    job = broken(field, value)
    if field == "volumes":
        del job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert f"{rule}: " in refuse(account, job)


def test_account_of_the_probe_creates_no_job_in_other_namespaces(cluster: Cluster, account: ClusterWriter) -> None:
    with cluster.namespace() as name:
        job = jobs()[0]
        job["metadata"]["namespace"] = name
        with pytest.raises(ForbiddenError):
            account.create(JOBS, job)


def test_account_of_the_probe_reads_no_secret_and_no_other_config_map(account: ClusterWriter) -> None:
    with pytest.raises(ForbiddenError):
        account.list(SECRETS, NAMESPACE)
    with pytest.raises(ForbiddenError):
        account.list(CONFIG_MAPS, NAMESPACE)


def test_policy_of_the_probe_has_no_type_warnings(cluster: Cluster, account: ClusterWriter) -> None:
    def checked() -> Object | None:
        found: Object = json.loads(cluster.kubectl("get", "validatingadmissionpolicy", POLICY, "--output=json"))
        generation = found.get("status", {}).get("observedGeneration", 0)
        return found if generation == found["metadata"]["generation"] else None

    policy = eventually(checked, "types of the policy are checked")
    assert policy
    assert not policy["status"].get("typeChecking", {}).get("expressionWarnings")
