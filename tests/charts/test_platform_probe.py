"""Chart `platform`: the CronJob that repeats `rayhelm probe`."""

from typing import Any

import pytest
import yaml

from charts.each_chart import chart_of
from charts.kit import over
from charts.pod_security import violations
from rayhelm.check.admission.evaluate import evaluate_policies, find_namespace
from rayhelm.check.admission.policy import AdmissionPolicy, read_policies
from rayhelm.deploy.compose.platform import build_platform_values
from rayhelm.facts import load_catalog
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.fleet.worker_images import name_worker_image
from rayhelm.live.probe.jobs import PoolTarget, build_node_job, build_pair_job
from rayhelm.live.probe.objects import build_setup
from rayhelm.live.probe.policy import POLICY
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

Object = dict[str, Any]
IMAGES = ["rayproject/ray-llm:2.60.0-py312-cu130"]
PROBE = {
    "enabled": True,
    "image": {"repository": "registry.example/team/rayhelm", "tag": "0.2.0"},
    "fleet": "fleet: mine\n",
    "images": IMAGES,
}
NETWORK = {"apiServer": {"cidrs": ["10.0.0.1/32"]}}
FLEET = """\
fleet: repeated
measurements: measured.yaml
clusters:
  main:
    apiServer: {cidrs: [10.0.0.1/32]}
    probe: {image: {repository: registry.example/team/rayhelm, tag: 0.2.0}, schedule: "@daily"}
pools:
  gpu: {gpu: L4-24GB, nodes: 2}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, unpinnedReason: a test of probe}
"""


def objects(**probe: Any) -> dict[tuple[str, str], Object]:
    chart = chart_of("platform")
    found = chart.objects(over(chart.smallest(), {"probe": {**PROBE, **probe}, "networkPolicy": NETWORK}))
    return {(item["kind"], item["metadata"]["name"]): item for item in found}


def pod_of(found: dict[tuple[str, str], Object]) -> Object:
    pod: Object = found["CronJob", "rayhelm-probe"]["spec"]["jobTemplate"]["spec"]["template"]
    return pod


def without_labels(item: Object) -> Object:
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "labels"}}


def test_chart_has_no_object_of_the_probe_by_default() -> None:
    chart = chart_of("platform")
    assert not [item for item in chart.objects(chart.smallest()) if "probe" in item["metadata"]["name"]]


def test_objects_of_the_chart_are_those_that_the_command_prints() -> None:
    found = objects(namespace="measure")
    # The CronJob of the chart is a Job in this namespace too.
    images = sorted([*IMAGES, "registry.example/team/rayhelm:0.2.0"])
    for item in build_setup("measure", images):
        one = found[item["kind"], item["metadata"]["name"]]
        assert without_labels(one) == without_labels(item)
        assert item["kind"] != "Namespace" or item["metadata"]["labels"].items() <= one["metadata"]["labels"].items()


def test_no_object_of_the_probe_is_in_the_namespace_of_the_release() -> None:
    found = [item for item in objects().values() if "rayhelm-probe" in item["metadata"]["name"]]
    assert {item["metadata"].get("namespace", "") for item in found} == {"", "rayhelm-probe"}
    for item in found:
        assert {subject["namespace"] for subject in item.get("subjects", [])} <= {"rayhelm-probe"}


def policies(**probe: Any) -> list[AdmissionPolicy]:
    return [each for each in read_policies(objects(**probe).values()) if each.name == POLICY]


def rules_against(job: Object, **probe: Any) -> set[str]:
    """Rules that the API server names when the job is created in the namespace of the probe."""
    about = find_namespace(job, {})
    return {each.rule for each in evaluate_policies(policies(**probe), job, about)}


def measuring_jobs(image: str = "rayproject/ray-llm:2.60.0-py312-cu130") -> list[Object]:
    loaded = load(FLEET.replace("measurements: measured.yaml\n", ""))
    pool, known = loaded.fleet.pools["gpu"], load_catalog()
    gpu = known.gpu("L4-24GB")
    target = PoolTarget("gpu", pool, gpu, gpu.id, image, on_cpu=False)
    return [build_node_job(target, "one", 1, 60), build_pair_job(target, ("one", "two"), 60)]


def job_of_the_cronjob(**probe: Any) -> Object:
    cronjob = objects(**probe)["CronJob", "rayhelm-probe"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "rayhelm-probe-1", "namespace": cronjob["metadata"]["namespace"]},
        "spec": cronjob["spec"]["jobTemplate"]["spec"],
    }


def test_policy_allows_the_jobs_of_the_probe() -> None:
    for job in [*measuring_jobs(), job_of_the_cronjob()]:
        assert rules_against(job) == set()


SECRET = {"name": "x", "secret": {"secretName": "ai-tls"}}
TOKEN = {"name": "x", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


@pytest.mark.parametrize(
    ("rule", "pod", "container"),
    [
        ("probe-account", {"serviceAccountName": "platform-doctor"}, {}),
        ("probe-account", {"serviceAccountName": "default"}, {}),
        ("probe-token", {"automountServiceAccountToken": True}, {}),
        ("probe-volumes", {"volumes": [SECRET]}, {}),
        ("probe-volumes", {"volumes": [TOKEN]}, {}),
        ("probe-volumes", {"volumes": [{"name": "x", "configMap": {"name": "rayhelm-measurements"}}]}, {}),
        ("probe-volumes", {"volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": "x"}}]}, {}),
        ("probe-environment", {}, {"envFrom": [{"secretRef": {"name": "x"}}]}),
        ("probe-environment", {}, {"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "x", "key": "x"}}}]}),
        ("probe-image", {}, {"image": "registry.example/other:1"}),
        ("probe-priority", {"priorityClassName": "rayhelm-gateway"}, {}),
        ("probe-pull-secrets", {"imagePullSecrets": [{"name": "x"}]}, {}),
        ("probe-image", {"initContainers": [{"name": "first", "image": "registry.example/other:1"}]}, {}),
    ],
)
def test_policy_refuses_other_jobs_of_the_account(rule: str, pod: Object, container: Object) -> None:
    for job in measuring_jobs():
        spec = job["spec"]["template"]["spec"]
        spec.update(pod)
        spec["containers"][0].update(container)
        assert rules_against(job) == {rule}


def test_policy_of_the_probe_is_for_its_namespace_only() -> None:
    (job, _) = measuring_jobs()
    job["spec"]["template"]["spec"]["serviceAccountName"] = "other"
    assert rules_against(job, namespace="measure") == set()
    job["metadata"]["namespace"] = "measure"
    assert rules_against(job, namespace="measure") == {"probe-account"}


def test_batch_class_of_the_values_is_the_one_of_the_jobs() -> None:
    chart = chart_of("platform")
    values = over(
        chart.smallest(), {"probe": PROBE, "networkPolicy": NETWORK, "priorityClasses": {"batch": {"name": "low"}}}
    )
    found = {(item["kind"], item["metadata"]["name"]): item for item in chart.objects(values)}
    assert "--priority-class=low" in pod_of(found)["spec"]["containers"][0]["command"]
    assert '"low"' in str(found["ValidatingAdmissionPolicy", POLICY]["spec"]["variables"])


def test_cronjob_meets_pod_security_and_reaches_the_api_server_only() -> None:
    found = objects()
    assert not violations(pod_of(found))
    policy = found["NetworkPolicy", "rayhelm-probe"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod_of(found)["metadata"]["labels"].items()
    assert [rule["to"] for rule in policy["egress"]] == [[{"ipBlock": {"cidr": "10.0.0.1/32"}}]]
    assert policy["ingress"] == []


def test_cronjob_runs_the_command_with_its_settings() -> None:
    plain, full = (pod_of(objects(**more))["spec"]["containers"][0] for more in ({}, {"cpu": True, "cluster": "edge"}))
    assert plain["command"][:3] == ["rayhelm", "probe", "/etc/rayhelm/fleet.yaml"]
    assert set(full["command"]) - set(plain["command"]) == {"--cpu", "--cluster=edge"}


def test_image_with_a_digest_has_no_tag() -> None:
    digest = "sha256:" + 64 * "0"
    (container,) = pod_of(objects(image={**PROBE["image"], "digest": digest}))["spec"]["containers"]  # type: ignore[dict-item]
    assert container["image"] == f"registry.example/team/rayhelm@{digest}"


def test_fleet_with_a_probe_renders_the_cronjob() -> None:
    loaded = load(FLEET)
    values = build_platform_values(plan_fleet(loaded), {})["main"]
    probe = values.probe
    assert (probe.enabled, probe.schedule) == (True, "@daily")
    assert values.network_policy.api_server.cidrs == ["10.0.0.1/32"]
    inside = parse_fleet(parse_document(probe.fleet, "fleet.yaml")).fleet
    assert inside == loaded.fleet.model_copy(update={"measurements": None})
    assert probe.images == [name_worker_image(loaded.fleet, "gpu")]
    assert yaml.safe_load(probe.fleet)["pools"] == {"gpu": {"gpu": "L4-24GB", "nodes": 2}}
